"""Parts of the scripts in this folder: PostgreSQL, boxoffice servers, and buyers who record what was acknowledged.

Everything listens on 127.0.0.1 and is in a temporary folder, which is deleted unless a script fails. All programs end with the folder's
block, also after a failure.
"""

import contextlib
import glob
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BOXOFFICE_PROGRAM", str(ROOT / "target/debug/boxoffice"))
BINARIES = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))[-1]
# PostgreSQL does not run as root.
USER = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
# Longer than a failover takes.
REPEAT_SECONDS = 120
# Ends what the script has started, in the opposite order.
started = contextlib.ExitStack()


def wait_until(what, is_true, seconds=60):
    """Waits until `is_true()`, or raises an error that names `what`."""
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def free_port():
    """A port that no program uses at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def temporary_folder(name):
    """A folder for data and logs, which is kept after a failure. At the end, everything ends that was started."""
    folder = Path(tempfile.mkdtemp(prefix=f"boxoffice-{name}-"))
    folder.chmod(0o755)
    try:
        with started:
            yield folder
    except BaseException:
        print(f"the logs are in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)


def check(conditions):
    """Ends the script with 1 if one of the conditions, which have names, is false."""
    missed = [name for name, is_met in conditions.items() if not is_met]
    if missed:
        raise RuntimeError("missed: " + ", ".join(missed))
    print("all met: " + ", ".join(conditions), flush=True)


def run(command, **options):
    """Runs a command, and returns its standard output. Raises an error with its standard error if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1]} failed with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def start(command, **options):
    """Starts a program, which ends with the script at the latest."""
    process = subprocess.Popen(list(map(str, command)), **options)
    started.callback(kill, process)
    return process


def kill(process):
    """Kills a program, if it still runs."""
    process.kill()
    process.wait()


def boxoffice(*arguments, folder, program=PROGRAM):
    """Runs a command of boxoffice."""
    return run([program, *arguments, "--data-dir", folder])


class Postgres:
    """A private PostgreSQL server."""

    def __init__(self, folder, options="-c fsync=off"):
        self.folder, self.data, self.port, self.options = folder, folder / "data", free_port(), options
        self.folder.mkdir()
        if os.getuid() == 0:
            shutil.chown(self.folder, USER)
        self.command("initdb", "-D", self.data, "-A", "trust", "-U", "boxoffice", "-N", "--encoding=UTF8", "--locale=C.UTF-8")
        started.callback(self.kill)
        self.start()

    def command(self, name, *arguments, check=True):
        """Runs a program of PostgreSQL as its user."""
        command = [f"{BINARIES}/{name}", *map(str, arguments)]
        subprocess.run(command, user=USER, check=check, stdout=subprocess.DEVNULL, cwd="/")

    def start(self):
        options = f"-p {self.port} -k {self.folder} -c max_connections=200 -c listen_addresses=127.0.0.1 {self.options}"
        self.command("pg_ctl", "-w", "-D", self.data, "-o", options, "-l", self.folder / "log", "start")

    def stop(self, mode="fast"):
        self.command("pg_ctl", "-D", self.data, "-m", mode, "stop")

    def kill(self):
        """Ends it at once, if it still runs."""
        if (self.data / "postmaster.pid").exists():
            self.command("pg_ctl", "-D", self.data, "-m", "immediate", "stop", check=False)

    def url(self, database):
        return f"postgres://boxoffice@127.0.0.1:{self.port}/{database}"

    def create(self, database):
        """Creates an empty database, and returns its URL."""
        self.query("postgres", f"create database {database}")
        return self.url(database)

    def query(self, database, sql):
        """Returns the output of a statement, without headings."""
        return run([f"{BINARIES}/psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), "-c", sql]).strip()


class Server:
    """A boxoffice server."""

    def __init__(self, folder, name, database, program=PROGRAM, options=()):
        self.port, self.log = free_port(), folder / f"{name}.log"
        self.command = [
            program, "serve", "--database", database, "--data-dir", folder / "data", "--listen", f"127.0.0.1:{self.port}",
            "--rate-limit", "0", "--login-rate-limit", "0", "--credential-change-limit", "0", "--access-log-sample", "0", *options,
        ]
        self.start()

    def start(self):
        self.process = start(self.command, stdout=subprocess.DEVNULL, stderr=open(self.log, "a"))
        wait_until(f"the server is ready (see {self.log})", self.is_ready)

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the server has exited with {self.process.returncode}: {self.log.read_text()[-2000:]}")
        try:
            return call(self.port, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            if self.process.wait(60) != 0:
                raise RuntimeError(f"the server has exited with {self.process.returncode}; see {self.log}")


def call(port, method, path, body=None, key=None, idempotency_key=None, timeout=35):
    """Sends a request on a new connection. Returns the status and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        return send(connection, method, path, body, key, idempotency_key)[:2]
    finally:
        connection.close()


def send(connection, method, path, body=None, key=None, idempotency_key=None):
    """Sends a request. Returns the status, the body and the headers."""
    headers = {"X-Client-Version": "3.0.0", "Content-Type": "application/json"}
    headers |= {"X-API-Key": key} if key else {}
    headers |= {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    response = connection.getresponse()
    text = response.read()
    is_json = "json" in (response.getheader("Content-Type") or "")
    return response.status, json.loads(text) if text and is_json else text, response.headers


class Sale:
    """Sample data on a new database, customers, and a section with many places."""

    def __init__(self, folder, database, places=100_000, program=PROGRAM):
        demo = boxoffice("demo", "--database", database, folder=folder / "data", program=program)
        keys = {line.rsplit(None, 1)[0].strip(): line.split()[-1] for line in demo.splitlines() if line.startswith("  ")}
        self.administrator, self.public = keys["administrator's key"], keys["public key"]
        self.places, self.customers, self.section, self.event = places, [], None, None

    def open(self, port, customers):
        """Signs up customers, and enlarges a section of the sample data."""
        events = self.ok(port, "GET", "/published-events", key=self.public)["entries"]
        event = next(event for event in events if event["title"] == "Highlife on the Lawn")
        self.event = event["self"]
        section = event["sections"][0]["self"]
        self.ok(port, "PUT", section, {"capacity": self.places}, self.administrator)
        self.section = f"{self.event}{section}"
        for number in range(customers):
            name = f"customer-{number}"
            account = {"username": name, "email": f"{name}@example.com", "password": "a demo password"}
            self.ok(port, "POST", "/accounts", account, self.public)
            log_in = {"identification": name, "password": "a demo password"}
            self.customers.append(self.ok(port, "POST", "/sessions", log_in, self.public)["key"])

    def ok(self, port, method, path, body=None, key=None):
        status, answer = call(port, method, path, body, key)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer


class Buyer(threading.Thread):
    """Orders, pays and reads, over and over.

    With `repeats`, a request that fails with 503 or without a response is sent again with the same idempotency key until it succeeds,
    as a client should do, for two minutes. The order counts as acknowledged from the moment of its 201. A failure ends the thread.
    """

    def __init__(self, sale, key, ports, stopping, limit=None, repeats=False):
        super().__init__(daemon=True)
        self.sale, self.key, self.ports, self.stopping, self.limit, self.repeats = sale, key, ports, stopping, limit, repeats
        self.connection, self.turn = None, 0
        # Number of responses by kind of request; failures; times of 503; errors of connections.
        self.done, self.failures, self.unavailable, self.unconnected = {}, [], 0, 0
        self.paid, self.acknowledged_at = [], []

    def attempt(self, method, path, body, idempotency_key):
        """Sends a request once, at the next server if the last one has failed. Returns the status, the body and the headers."""
        if self.connection is None:
            self.turn += 1
            self.connection = http.client.HTTPConnection("127.0.0.1", self.ports[self.turn % len(self.ports)], timeout=35)
        try:
            return send(self.connection, method, path, body, self.key, idempotency_key)
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise

    def request(self, kind, method, path, body=None):
        """Sends a request until it succeeds, and returns the body. Raises an error after a failure."""
        idempotency_key = str(uuid.uuid4()) if method == "POST" else None
        end = time.monotonic() + REPEAT_SECONDS
        while True:
            problem = None
            try:
                status, answer, headers = self.attempt(method, path, body, idempotency_key)
                if status < 300:
                    self.done[kind] = self.done.get(kind, 0) + 1
                    return answer
                problem = f"{kind}: {status} {answer}"
                # 409: the first attempt is still being executed, by a server whose response was lost.
                is_temporary = status == 503 or (status == 409 and "idempotency" in str(answer))
                if status == 503:
                    self.unavailable += 1
                    if not headers.get("Retry-After"):
                        is_temporary = False
            except (OSError, http.client.HTTPException) as error:
                problem, is_temporary = f"{kind}: {error!r}", True
                self.unconnected += 1
            if not (self.repeats and is_temporary and time.monotonic() < end):
                raise RuntimeError(problem)
            time.sleep(0.1)

    def buy(self):
        order = self.request("orders", "POST", "/orders", {"items": {self.sale.section: 1}})
        self.acknowledged_at.append(time.monotonic())
        path = f"/orders/{order['number']}"
        self.request("payments", "POST", f"{path}/payments", {"method": "card", "token": "tok_approve"})
        self.paid.append(order["number"])
        for read in (path, f"{self.sale.event}", "/published-events"):
            self.request("reads", "GET", read)

    def run(self):
        try:
            while not self.stopping.is_set() and (self.limit is None or self.done.get("orders", 0) < self.limit):
                self.buy()
        except Exception as error:  # Everything counts as a failure.
            self.failures.append(repr(error))


class Buyers:
    """Several buyers at the same time."""

    def __init__(self, sale, ports, limit=None, repeats=False):
        self.stopping, self.started = threading.Event(), time.monotonic()
        self.threads = [Buyer(sale, key, ports, self.stopping, limit, repeats) for key in sale.customers]
        for number, buyer in enumerate(self.threads):
            buyer.turn = number
            buyer.start()

    def wait(self):
        """Waits until each has reached its limit or failed."""
        for buyer in self.threads:
            buyer.join()
        self.seconds = time.monotonic() - self.started

    def stop(self):
        self.stopping.set()
        self.wait()

    def total(self, kind):
        return sum(buyer.done.get(kind, 0) for buyer in self.threads)

    @property
    def failures(self):
        return [failure for buyer in self.threads for failure in buyer.failures]

    @property
    def paid(self):
        return {order for buyer in self.threads for order in buyer.paid}

    def first_order_after(self, moment):
        """The time of the first acknowledged order after a moment, or None."""
        return min((at for buyer in self.threads for at in list(buyer.acknowledged_at) if at > moment), default=None)

    def figures(self):
        counts = ", ".join(f"{self.total(kind)} {kind}" for kind in ("orders", "payments", "reads"))
        repeated = sum(buyer.unavailable for buyer in self.threads), sum(buyer.unconnected for buyer in self.threads)
        requests = sum(sum(buyer.done.values()) for buyer in self.threads)
        return (
            f"{counts}; {len(self.failures)} failed; {repeated[0]} times 503, {repeated[1]} without a response; "
            f"{requests / self.seconds:.0f} requests/s"
        )


def check_books(query, buyers, sale):
    """Returns conditions: every acknowledged payment is in the database, and no place was sold twice."""
    fulfilled = set(query("select distinct id from orders where status = 'Fulfilled'").split())
    section = int(sale.section.rsplit("/", 1)[1])
    tickets, sold, capacity = query(
        f"select (select count(*) from tickets where section_id = {section} and status <> 'Void'), sold, capacity "
        f"from sections where id = {section}"
    ).split("|")
    several = query(
        "select count(*) from (select i.order_id from order_items i left join tickets t on t.order_id = i.order_id "
        f"join orders o on o.id = i.order_id where i.section_id = {section} and o.status = 'Fulfilled' "
        "group by i.order_id, i.quantity having count(t.id) <> i.quantity) x"
    )
    lost = {order for order in buyers.paid if str(int(order)) not in fulfilled}
    print(f"{len(buyers.paid)} paid orders acknowledged, {len(lost)} lost; {tickets} tickets, {sold} of {capacity} places sold")
    return {
        "0 acknowledged orders lost": not lost,
        "0 places sold twice": tickets == sold and int(sold) <= int(capacity) and several == "0",
    }
