#!/usr/bin/env bash
# Compares boxoffice with pretix: the same operations on PostgreSQL, on the same machine, in turns.
#
#   benches/pretix.sh                                both, in about twelve minutes
#   benches/pretix.sh pretix                         one of them: boxoffice or pretix
#   TURN=2 ROUNDS=1 benches/pretix.sh                a short run
#   OPERATIONS='event list' benches/pretix.sh        some of the operations: order, event, list and scan
#
# Installs what it needs: wrk, Redis and PostgreSQL from Debian, pretix from PyPI into a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."

PRETIX=2026.8.0
GUNICORN=27.0.1
PYTHON=${PYTHON:-/usr/bin/python3}
TURN=${TURN:-10} # seconds of a turn
ROUNDS=${ROUNDS:-3} # turns of each server for each operation
CONNECTIONS=${CONNECTIONS:-64}
OPERATIONS=${OPERATIONS:-order event list scan}
EVENTS=10000 # besides the one with five sections
WARM_UP=2 # seconds before each turn, as in boxoffice-load
WORKERS=$((2 * $(nproc))) # as pretix's documentation recommends
# Enough for 200 scans per second and core; the first one is for the check.
TICKETS=$((1 + ROUNDS * ((TURN + WARM_UP) * $(nproc) * 200 + 2 * CONNECTIONS)))
PORT=4012 REDIS_PORT=4013
(($#)) && servers=("$@") || servers=(boxoffice pretix)

declare -A scenario=([order]=on-sale-hot [event]=read-event [list]=list-published [scan]=scan)
declare -A title=(
  [order]='place an unpaid order of one ticket' [event]='read an event' [list]='read 25 events of a list' [scan]='admit a ticket'
)
api=http://127.0.0.1:$PORT/api/v1/organizers/accra
declare -A url=(
  [order]=$api/events/lawn/orders/ [event]=$api/events/lawn/ [list]="$api/events/?page_size=25" [scan]=$api/checkinrpc/redeem/
)
JSON='Content-Type: application/json'

declare -A pid=()
folder=$(mktemp -d)
# PostgreSQL runs as another user, who must be able to enter the folder.
chmod 755 "$folder"
fail() { echo "$*" >&2; exit 1; }

# Stops a program. PostgreSQL and gunicorn don't wait for their clients on INT. boxoffice-load and its server are a process group; its
# PostgreSQL then stops by itself and empties its folder.
stop() {
  local target=${pid[$1]} signal=TERM attempt
  case $1 in
    postgres | pretix) signal=INT ;;
    load) target=-$target signal=KILL ;;
  esac
  kill -s "$signal" -- "$target" && wait "${pid[$1]}" || true
  unset "pid[$1]"
  for ((attempt = 0; attempt < 100; attempt++)); do
    compgen -G "$folder/boxoffice/*/data" >/dev/null || break
    sleep 0.1
  done
}
trap '{ for name in load wrk pretix redis postgres; do [[ -z ${pid[$name]:-} ]] || stop "$name"; done; rm -rf "$folder"; } 2>/dev/null' EXIT

# Installs a Debian package if a command fails.
install_unless() {
  "${@:2}" >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1"; } >/dev/null
}

# Prints the folder of PostgreSQL's programs: of the PATH, or else the newest one of Debian.
postgres_folder() {
  local postgres
  postgres=$(command -v postgres || printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -1)
  [[ -x $postgres ]] && dirname "$(realpath "$postgres")"
}

# Replaces this process by a command, as the user postgres if the script runs as root, because PostgreSQL refuses to run as root.
as_postgres() {
  ((EUID)) || set -- setpriv --reuid=postgres --regid=postgres --init-groups "$@"
  exec "$@"
}

# Waits up to a minute until a command succeeds; fails if the program ends.
wait_until() {
  local name=$1 started=$SECONDS
  until "${@:2}" >/dev/null 2>&1; do
    if ((SECONDS - started > 60)) || ! kill -0 "${pid[$name]}" 2>/dev/null; then
      fail "$name did not start: $(tail -20 "$folder/$name.log")"
    fi
    sleep 0.2
  done
}

# Starts PostgreSQL with the options that boxoffice-load uses: its defaults except for memory and the number of connections.
start_postgres() {
  local data=$folder/postgres
  mkdir "$data"
  ((EUID)) || chown postgres: "$data"
  (
    cd "$data"
    as_postgres "$postgres/initdb" -D data -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-instructions
  ) >"$folder/postgres.log" 2>&1 || fail "initdb failed: $(cat "$folder/postgres.log")"
  (
    cd "$data"
    as_postgres "$postgres/postgres" -D data -k "$data" -c listen_addresses= -c port=5432 -c max_connections=120 \
      -c shared_buffers=1GB -c max_wal_size=4GB
  ) >>"$folder/postgres.log" 2>&1 &
  pid[postgres]=$!
  wait_until postgres grep -q '^ready' "$data/data/postmaster.pid"
}

# Checks that no server uses a port.
is_free() { ! (exec 9<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || fail "Another server is using port $1."; }

# Starts Redis without files.
start_redis() {
  is_free "$REDIS_PORT"
  redis-server --bind 127.0.0.1 --port "$REDIS_PORT" --save '' --dir "$folder" >"$folder/redis.log" 2>&1 &
  pid[redis]=$!
  wait_until redis redis-cli -p "$REDIS_PORT" ping
}

# Installs pretix and creates its database.
install_pretix() {
  "$PYTHON" -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pretix==$PRETIX" "gunicorn==$GUNICORN" >"$folder/pip.log" 2>&1 ||
    fail "pip failed: $(tail -20 "$folder/pip.log")"
  mkdir "$folder/data"
  export PRETIX_CONFIG_FILE=$folder/pretix.cfg DJANGO_SETTINGS_MODULE=pretix.settings
  # The sections of pretix's installation guide.
  cat >"$PRETIX_CONFIG_FILE" <<EOF
[pretix]
url=http://127.0.0.1:$PORT
datadir=$folder/data
[database]
backend=postgresql
name=postgres
user=postgres
host=$folder/postgres
[redis]
location=redis://127.0.0.1:$REDIS_PORT/0
sessions=true
[celery]
backend=redis://127.0.0.1:$REDIS_PORT/1
broker=redis://127.0.0.1:$REDIS_PORT/2
EOF
  "$folder/venv/bin/python" -m pretix migrate --noinput >"$folder/migrate.log" 2>&1 ||
    fail "migrate failed: $(tail -20 "$folder/migrate.log")"
}

# Creates pretix's test data, and sets `token`, `item` and `list`. The tickets to admit belong to an event of their own: pretix counts
# an event's tickets for each order.
fill_pretix() {
  cat >"$folder/fill.py" <<'EOF'
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import django

django.setup()

from django.conf import settings
from django.db import connection, transaction
from django.utils.timezone import now
from django_scopes import scopes_disabled
from pretix.base.models import Event, Order, OrderPosition, Organizer

EVENTS, TICKETS = int(sys.argv[1]), int(sys.argv[2])
START = datetime(2090, 12, 1, 19, tzinfo=timezone.utc)
ITEMS = {"Lawn": "45.00", "Terrace": "60.00", "Balcony": "80.00", "Box": "150.00", "Stage": "199.99"}


def new_event(organizer, slug, title, minutes=0):
    return Event(
        organizer=organizer, slug=slug, name=title, currency="EUR", live=True, is_public=True, location="Liberia Road, Accra",
        geo_lat=5.5527, geo_lon=-0.2009, date_from=START + timedelta(minutes=minutes), date_to=START + timedelta(minutes=minutes + 240),
        plugins=settings.PRETIX_PLUGINS_DEFAULT,
    )


def create_event(organizer, slug):
    event = new_event(organizer, slug, "Highlife on the Lawn")
    event.save()
    event.set_defaults()
    for name, price in ITEMS.items():
        item = event.items.create(name=name, default_price=Decimal(price))
        event.quotas.create(name=name, size=1_000_000).items.add(item)
    return event


assert not settings.DEBUG
with connection.cursor() as cursor:
    for setting in ("fsync", "synchronous_commit"):
        cursor.execute(f"show {setting}")
        assert cursor.fetchone() == ("on",), setting
with scopes_disabled():
    with transaction.atomic():
        organizer = Organizer.objects.create(name="Accra Live", slug="accra")
        event, admitted = create_event(organizer, "lawn"), create_event(organizer, "admitted")
        further = [new_event(organizer, f"lawn-{n:05}", f"Highlife on the Lawn {n}", n) for n in range(EVENTS - 1)]
        Event.objects.bulk_create(further, batch_size=1000)
        team = organizer.teams.create(name="load", all_events=True, all_event_permissions=True)
        token = team.tokens.create(name="load").token
        item, placed, web = admitted.items.first(), now(), organizer.sales_channels.get(identifier="web")
        orders = [
            Order(
                organizer=organizer, event=admitted, code=f"L{n:08}", status=Order.STATUS_PAID, email="ama@example.com", locale="en",
                datetime=placed, expires=placed + timedelta(days=14), total=item.default_price, sales_channel=web,
            )
            for n in range(TICKETS)
        ]
        Order.objects.bulk_create(orders, batch_size=1000)
        positions = [
            OrderPosition(
                organizer=organizer, order=order, item=item, price=item.default_price, tax_rate=0, tax_value=0, attendee_name_parts={},
                secret=f"{n:032}", pseudonymization_id=f"L{n:09}",
            )
            for n, order in enumerate(orders)
        ]
        OrderPosition.objects.bulk_create(positions, batch_size=1000)
        checkin_list = admitted.checkin_lists.create(name="Entrance")
    with connection.cursor() as cursor:
        # Otherwise autovacuum would run during the measurement.
        cursor.execute("vacuum analyze")
    print(token, event.items.first().pk, checkin_list.pk)
EOF
  "$folder/venv/bin/python" "$folder/fill.py" "$EVENTS" "$TICKETS" >"$folder/fill.out" 2>"$folder/fill.log" ||
    fail "The test data failed: $(tail -20 "$folder/fill.log")"
  read -r token item list < <(tail -1 "$folder/fill.out")
  AUTHORIZATION="Authorization: Token $token"
  seq -f '%032.0f' 0 $((TICKETS - 1)) >"$folder/secrets"
  used=0 orders=0 scans=0
}

# Writes the requests of an operation as a script of wrk. Each admission has the next secret of the file.
write_requests() {
  order="{\"email\": \"ama@example.com\", \"locale\": \"en\", \"status\": \"n\", \"send_email\": false, \"positions\": [{\"item\": $item}]}"
  scan="{\"lists\": [$list], \"secret\": \"%s\"}"
  printf 'wrk.method = "GET"\n' | tee "$folder/event.lua" >"$folder/list.lua"
  printf 'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n' | tee "$folder/order.lua" >"$folder/scan.lua"
  printf 'wrk.body = [[%s]]\n' "$order" >>"$folder/order.lua"
  cat >>"$folder/scan.lua" <<EOF
function init(arguments)
  secrets, sent = {}, 0
  for secret in io.lines(arguments[1]) do table.insert(secrets, secret) end
end
function request()
  sent = sent + 1
  return wrk.format(nil, nil, nil, ([[$scan]]):format(secrets[sent] or "none is left"))
end
EOF
}

# Starts pretix with gunicorn.
start_pretix() {
  is_free "$PORT"
  "$folder/venv/bin/gunicorn" pretix.wsgi --name pretix --workers "$WORKERS" --bind "127.0.0.1:$PORT" --chdir "$folder" \
    --no-control-socket >"$folder/pretix.log" 2>&1 &
  pid[pretix]=$!
  wait_until pretix curl -sf -m 60 -H "$AUTHORIZATION" "${url[event]}"
}

# Checks the response to each request, and that pretix rejects an unknown token, an invalid order and a second admission.
check() {
  local secret body=$folder/body
  expect() {
    local status
    status=$(curl -s -m 60 -o "$body" -w '%{http_code}' "${@:3}") || true
    [[ $status == "$1" ]] || fail "pretix returned $status instead of $1: curl ${*:3}: $(cut -c1-1000 "$body")"
    "$folder/venv/bin/python" -c "import json, sys; body = json.load(sys.stdin); assert $2, body" <"$body" || fail "Not $2: curl ${*:3}"
  }
  secret=$(head -1 "$folder/secrets")
  expect 200 'body["slug"] == "lawn"' -H "$AUTHORIZATION" "${url[event]}"
  expect 401 True -H 'Authorization: Token wrong' "${url[event]}"
  expect 200 "len(body['results']) == 25 and body['count'] == $EVENTS + 1" -H "$AUTHORIZATION" "${url[list]}"
  expect 201 'body["status"] == "n" and len(body["positions"]) == 1' -H "$AUTHORIZATION" -H "$JSON" -d "$order" "${url[order]}"
  expect 400 True -H "$AUTHORIZATION" -H "$JSON" -d '{"positions": [{"item": 0}]}' "${url[order]}"
  # shellcheck disable=SC2059 # The format is the request.
  expect 201 'body["status"] == "ok"' -H "$AUTHORIZATION" -H "$JSON" -d "$(printf "$scan" "$secret")" "${url[scan]}"
  # shellcheck disable=SC2059
  expect 400 'body["reason"] == "already_redeemed"' -H "$AUTHORIZATION" -H "$JSON" -d "$(printf "$scan" "$secret")" "${url[scan]}"
  used=1 orders=1 scans=1
}

# Sends requests to pretix for some seconds, with a timeout of a minute, and waits for the responses that wrk has left behind.
load_pretix() {
  local operation=$1 seconds=$2 out=$folder/wrk completed
  [[ $operation != scan ]] || tail -n "+$((used + 1))" "$folder/secrets" >"$folder/secrets.left"
  wrk -t1 -c"$CONNECTIONS" -d"$seconds" --timeout 60s --latency -H "$AUTHORIZATION" -s "$folder/$operation.lua" "${url[$operation]}" \
    -- "$folder/secrets.left" >"$out" &
  pid[wrk]=$!
  wait "${pid[wrk]}" || fail "wrk failed: $(cat "$out")"
  unset 'pid[wrk]'
  ! grep -E 'Non-2xx|Socket errors' "$out" ||
    fail "pretix failed under load, or $TICKETS tickets were not enough: $(tail -5 "$folder/pretix.log")"
  completed=$(awk '/ requests in / { print $1 }' "$out")
  ((completed)) || fail "pretix returned no response in $seconds seconds."
  case $operation in
    order) orders=$((orders + completed)) ;;
    # wrk takes a secret at its start, and has further requests in flight at its end.
    scan) scans=$((scans + completed)) used=$((used + completed + CONNECTIONS + 1)) ;;
  esac
  curl -sf -m 60 -o "$folder/body" -H "$AUTHORIZATION" "${url[event]}" || fail "pretix does not respond after a load."
  sleep 0.5
}

# Prints a line for a turn, and keeps its figures.
print_turn() {
  printf '  %-6s %-10s %10.1f requests/s, p50 %8.2f ms, p99 %8.2f ms\n' "$2" "$1" "$3" "$4" "$5"
  echo "$3" >>"$folder/$2.$1.rate"
  echo "$4" >>"$folder/$2.$1.p50"
  echo "$5" >>"$folder/$2.$1.p99"
}

# Measures pretix's turns of a round.
turns_of_pretix() {
  local operation
  for operation in $OPERATIONS; do
    load_pretix "$operation" "$WARM_UP"
    load_pretix "$operation" "$TURN"
    # Durations of wrk have a unit.
    # shellcheck disable=SC2046 # Three numbers.
    print_turn pretix "$operation" $(awk '
      function ms(text) { return text ~ /us$/ ? text / 1000 : text ~ /ms$/ ? text + 0 : text ~ /m$/ ? text * 60000 : text * 1000 }
      $1 == "50%" { p50 = ms($2) } $1 == "99%" { p99 = ms($2) } /^Requests\/sec/ { print $2, p50, p99 }' "$folder/wrk")
  done
}

# Measures boxoffice's turns of a round: boxoffice-load creates the database and test data once, and starts the server for each operation.
turns_of_boxoffice() {
  local operation scenarios=() out=$folder/load rate p50 p99
  for operation in $OPERATIONS; do scenarios+=("${scenario[$operation]}"); done
  setsid "$BOXOFFICE_LOAD" "${scenarios[@]}" --program "$BOXOFFICE" --place "$folder/boxoffice" --databases postgres --orders 1000 \
    --events "$EVENTS" --connections "$CONNECTIONS" --seconds "$TURN" --json "$out.json" >"$out" 2>&1 </dev/null &
  pid[load]=$!
  wait "${pid[load]}" || fail "boxoffice-load failed: $(cat "$out")"
  unset 'pid[load]'
  "$PYTHON" - "$out.json" "${scenarios[@]}" >"$out" <<'EOF' || fail "boxoffice failed under load."
import json, sys

rows = json.load(open(sys.argv[1]))
if [row["scenario"] for row in rows] != sys.argv[2:]:
    sys.exit("boxoffice-load did not run each scenario.")
for row in rows:
    if row["others"]:
        sys.exit(f"{row['scenario']}: statuses {row['others']}")
    print(row["per_second"], row["milliseconds"]["p50"], row["milliseconds"]["p99"])
EOF
  for operation in $OPERATIONS; do
    read -r rate p50 p99
    print_turn boxoffice "$operation" "$rate" "$p50" "$p99"
  done <"$out"
}

# Checks that pretix has stored what its responses confirm.
check_stored() {
  local stored
  count() { curl -sf -m 60 -H "$AUTHORIZATION" "$1" | "$folder/venv/bin/python" -c "import json, sys; print(json.load(sys.stdin)['$2'])"; }
  stored=$(count "${url[order]}?page_size=1" count)
  ((stored >= orders)) || fail "pretix has confirmed $orders orders and stored $stored."
  stored=$(count "$api/events/admitted/checkinlists/$list/" checkin_count)
  ((stored >= scans)) || fail "pretix has confirmed $scans admissions and stored $stored."
}

median() { sort -n | awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'; }

# Prints each server's medians of an operation, and the ratio of boxoffice's rate to pretix's.
print_medians() {
  local operation=$1 server all=()
  echo "$operation: ${title[$operation]}"
  for server in "${servers[@]}"; do
    all+=("$(median <"$folder/$operation.$server.rate")")
    printf '  %-10s %10.1f requests/s, p50 %8.2f ms, p99 %8.2f ms, medians\n' "$server" "${all[-1]}" \
      "$(median <"$folder/$operation.$server.p50")" "$(median <"$folder/$operation.$server.p99")"
  done
  ((${#all[@]} < 2)) || awk "BEGIN { printf \"  ratio      %10.1f\n\", ${all[0]} / ${all[1]} }"
}

# Prints the version of a package in pretix's environment.
package() { "$folder/venv/bin/python" -c "import importlib.metadata as m; print(m.version('$1'))"; }

[[ ${servers[*]} =~ ^(boxoffice|pretix|boxoffice pretix)$ ]] || fail "Unknown servers ${servers[*]}. Use boxoffice, pretix or nothing for both."
for operation in $OPERATIONS; do
  [[ -n ${scenario[$operation]:-} ]] || fail "Unknown operation $operation. Use order, event, list or scan."
done
install_unless postgresql postgres_folder
postgres=$(postgres_folder)
echo "$(nproc) cores of $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(uname -sr), load $(cut -d' ' -f1-3 /proc/loadavg)"
"$postgres/postgres" --version
for server in "${servers[@]}"; do
  case $server in
    boxoffice)
      if [[ -z ${BOXOFFICE:-} || -z ${BOXOFFICE_LOAD:-} ]]; then
        cargo build --profile dist --locked --quiet -p boxoffice -p boxoffice-load
        commit=", commit $(git describe --always --dirty 2>/dev/null || echo unknown)"
      fi
      built=${CARGO_TARGET_DIR:-target}/dist
      BOXOFFICE=${BOXOFFICE:-$built/boxoffice} BOXOFFICE_LOAD=${BOXOFFICE_LOAD:-$built/boxoffice-load}
      echo "$("$BOXOFFICE" --version)${commit:-, $BOXOFFICE}"
      ;;
    pretix)
      install_unless wrk command -v wrk
      install_unless redis-server command -v redis-server
      install_unless curl command -v curl
      install_unless python3-venv "$PYTHON" -c 'import ensurepip'
      start_redis
      start_postgres
      install_pretix
      fill_pretix
      write_requests
      start_pretix
      check
      echo "pretix $(package pretix) on Django $(package Django) and $("$folder/venv/bin/python" --version)"
      echo "gunicorn $(package gunicorn) with $WORKERS workers, $(redis-server --version | cut -d' ' -f1-3), $( (wrk -v || true) 2>&1 | head -1 | cut -d' ' -f1-2)"
      # Each worker loads a part of its code with its first requests.
      for operation in $OPERATIONS; do load_pretix "$operation" "$WARM_UP"; done
      ;;
  esac
done
echo "$ROUNDS turns of $TURN s with $CONNECTIONS connections"

for ((round = 1; round <= ROUNDS; round++)); do
  echo "round $round, load $(cut -d' ' -f1 /proc/loadavg)"
  for server in "${servers[@]}"; do "turns_of_$server"; done
done
[[ -z ${pid[pretix]:-} ]] || check_stored
for operation in $OPERATIONS; do print_medians "$operation"; done
