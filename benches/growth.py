#!/usr/bin/env python3
"""Measures how much a database grows with orders.

Starts a server on an empty database, places and pays orders of two tickets each, admits the tickets, and prints the size of each
table with its indexes, scaled to 100,000 orders. Each order and each payment has an Idempotency-Key. Needs only Python 3, and psql
for PostgreSQL.

    benches/growth.py --orders 20000 --server target/dist/boxoffice [--postgres postgres://USER@HOST/EMPTY_DATABASE]
"""

import argparse
import http.client
import json
import os
import re
import sqlite3
import subprocess
import tempfile
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

PASSWORD = "a password of the measurement"


class Client:
    def __init__(self, address, key):
        self.connection, self.key = http.client.HTTPConnection(address, timeout=60), key

    def send(self, method, path, body=None, idempotent=False):
        headers = {"X-API-Key": self.key, "X-Client-Version": "3.0.0", "Content-Type": "application/json"}
        if idempotent:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.connection.getresponse()
        text = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {text[:500]}")
        return json.loads(text) if text else None


class Sqlite:
    def __init__(self, folder):
        self.connection = sqlite3.connect(os.path.join(folder, "boxoffice.db"))

    def query(self, sql):
        return self.connection.execute(sql).fetchall()

    def sizes(self):
        """Returns the bytes of each table with its indexes."""
        query = "select m.tbl_name, sum(s.pgsize) from dbstat s join sqlite_schema m on m.name = s.name group by m.tbl_name"
        return dict(self.query(query))


class Postgres:
    def __init__(self, url):
        self.url = url

    def query(self, sql):
        output = subprocess.run(["psql", "-XAtq", "-d", self.url, "-c", sql], check=True, stdout=subprocess.PIPE, text=True).stdout
        return [line.split("|") for line in output.splitlines()]

    def sizes(self):
        """Returns the bytes of each table with its indexes."""
        query = "select relname, pg_total_relation_size(oid) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        return {name: int(size) for name, size in self.query(query)}


def start(server, folder, postgres):
    environment = {"BOXOFFICE_DATA_DIR": folder, "BOXOFFICE_LISTEN": "127.0.0.1:0", "BOXOFFICE_ACCESS_LOG_SAMPLE": "1000000"}
    if postgres:
        environment["DATABASE_URL"] = postgres
    for limit in ["RATE", "LOGIN_RATE", "CODE", "CREDENTIAL_CHANGE", "FAILED_LOGIN"]:
        environment[f"BOXOFFICE_{limit}_LIMIT"] = "0"
    process = subprocess.Popen([server, "serve"], env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in process.stderr:
        found = re.search(r'"msg":"serving".*"address":"([^"]+)"|"address":"([^"]+)".*"msg":"serving"', line)
        if found:
            threading.Thread(target=lambda: [None for _ in process.stderr], daemon=True).start()
            return process, found.group(1) or found.group(2)
    raise SystemExit("the server has not started")


def sell(address, keys, section, orders):
    """Places and pays the orders, one customer per connection."""

    def buy(number, key):
        client = Client(address, key)
        for _ in range(number, orders, len(keys)):
            order = client.send("POST", "/orders", {"items": {section: 2}}, idempotent=True)
            client.send("POST", order["self"] + "/payments", {"method": "card", "token": "tok_approve"}, idempotent=True)

    with ThreadPoolExecutor(len(keys)) as pool:
        # The list raises the first error of a buyer.
        list(pool.map(buy, range(len(keys)), keys))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=20_000)
    parser.add_argument("--server", default="target/dist/boxoffice")
    parser.add_argument("--postgres", metavar="URL")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        process, address = start(os.path.abspath(options.server), folder, options.postgres)
        try:
            database = Postgres(options.postgres) if options.postgres else Sqlite(folder)
            measure(options.orders, folder, address, database)
        finally:
            process.terminate()
            process.wait()


def measure(orders, folder, address, database):
    with open(os.path.join(folder, "first-start.txt"), encoding="utf-8") as file:
        key = re.search(r"administrator's key +(\S+)", file.read()).group(1)
    staff = Client(address, key)
    region = staff.send("POST", "/regions", {"name": "Greater Accra", "country": "Ghana"})["self"]
    venue = {"name": "Theatre", "region": region, "address": "Liberia Road", "longitude": -0.2, "latitude": 5.55}
    venue = staff.send("POST", "/venues", venue)["self"]
    category = staff.send("POST", "/categories", {"name": "Music", "subcategories": ["Jazz"]})["self"]
    host = staff.send("POST", "/hosts", {"name": "Accra Live", "contact": "Kofi", "email": "kofi@example.com"})["self"]
    event = {"host": host, "title": "Jazz Night", "description": "Jazz.", "type": "Standard", "public": True, "category": category,
             "subcategory": "Jazz", "venue": venue, "start": "2020-12-20T19:00", "end": "2999-12-20T23:00"}
    event = staff.send("POST", "/events", event)["self"]
    section = {"name": "Floor", "basePrice": 20, "capacity": 2 * orders, "salesStart": "2020-01-01T00:00",
               "salesEnd": "2999-12-20T19:00"}
    section = staff.send("POST", event + "/sections", section)["self"]
    submission = staff.send("POST", event + "/submissions")["self"]
    staff.send("DELETE", submission + "?approved=true")
    customers = []
    for number in range(16):
        account = {"username": f"customer{number}", "email": f"customer{number}@example.com", "password": PASSWORD}
        account = staff.send("POST", "/accounts", account)["number"]
        customers.append(staff.send("POST", "/integrations", {"name": "x", "role": "customer", "account": account})["key"])
    before = database.sizes()
    sell(address, customers, section, orders)
    sold = database.sizes()
    serials = [serial for (serial,) in database.query("select serial from tickets")]
    # The server closes connections that were idle during the sale.
    staff = Client(address, key)
    for start_index in range(0, len(serials), 2):
        staff.send("POST", event + "/admissions", {"serials": serials[start_index:start_index + 2]})
    admitted = database.sizes()
    placed = int(database.query("select count(*) from orders where status = 'Fulfilled'")[0][0])
    if placed != orders:
        raise RuntimeError(f"{placed} of {orders} orders are in the database")
    scale = 100_000 / placed / 2**20
    print(f"{placed} orders of 2 tickets, each paid by card and admitted; MiB per 100,000 orders, indexes included")
    names = sorted(admitted, key=lambda name: before.get(name, 0) - admitted[name])
    rows = [(name, (sold.get(name, 0) - before.get(name, 0)) * scale, (admitted[name] - sold.get(name, 0)) * scale) for name in names]
    for name, by_sale, by_admission in rows:
        if by_sale + by_admission >= 0.5:
            print(f"{name:22} sale {by_sale:8.1f}   admission {by_admission:8.1f}")
    print(f"{'total':22} sale {sum(row[1] for row in rows):8.1f}   admission {sum(row[2] for row in rows):8.1f}")


if __name__ == "__main__":
    main()
