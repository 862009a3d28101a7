#!/usr/bin/env bash
# Compares the mock with Prism: the same document, requests and machine, in turns.
#
#   benches/mock.sh                                  both, in about five minutes
#   benches/mock.sh boxoffice                        one of them: prism or boxoffice
#   TURN=2 ROUNDS=1 STARTS=3 benches/mock.sh         a short run
#   DOCUMENTS=petstore benches/mock.sh               one of the documents: contract or petstore
#
# Installs what it needs: wrk from Debian, Prism from npm into a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."

PRISM=5.16.0
EXAMPLES=8.2.2 # @readme/oas-examples, which contains the petstore
TURN=${TURN:-10} # seconds of a turn
ROUNDS=${ROUNDS:-3} # turns of each server for each request
STARTS=${STARTS:-10} # starts of each server
CONNECTIONS=${CONNECTIONS:-16}
DOCUMENTS=${DOCUMENTS:-contract petstore}
(($#)) && servers=("$@") || servers=(prism boxoffice)

JSON='Content-Type: application/json'
HEADERS=(-H 'X-API-Key: any' -H 'X-Client-Version: 3.0.0')

# Selects a document, and the requests to send: the contract with its own examples, or the petstore, whose responses are generated
# because it has no examples.
select_document() {
  case $1 in
    contract)
      spec=spec/openapi.yaml get=/events/17637000000051 post=/orders created=201
      body='{"customer": "GH-4K7QW2MZ", "items": {"/events/17637000000051/sections/17637000000062": 2}}'
      wrong='{"customer": "GH-4K7QW2MZ", "items": {"/events/17637000000051/sections/17637000000062": "two"}}'
      ;;
    petstore)
      spec=$folder/node_modules/@readme/oas-examples/3.0/json/petstore-expanded.json get=/pets/7 post=/pets created=200
      body='{"name": "Anansi", "tag": "spider"}'
      wrong='{"name": 7}'
      ;;
    *) fail "Unknown document $1. Use contract, petstore or both." ;;
  esac
  echo 'wrk.method = "GET"' >"$folder/GET.lua"
  printf 'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [[%s]]\n' "$body" >"$folder/POST.lua"
}

declare -A port=([prism]=4010 [boxoffice]=4011) pid=()
folder=$(mktemp -d)
stop() { kill "${pid[$1]}" && wait "${pid[$1]}" || true; unset "pid[$1]"; }
trap 'for server in "${!pid[@]}"; do stop "$server"; done 2>/dev/null; rm -rf "$folder"' EXIT
fail() { echo "$*" >&2; exit 1; }

# Starts a server in the background.
start() {
  local option=()
  # The contract is built in.
  [[ $spec == spec/openapi.yaml ]] || option=(--spec "$spec")
  case $1 in
    prism) "$folder/node_modules/.bin/prism" mock -v silent -h 127.0.0.1 -p "${port[$1]}" "$spec" & ;;
    boxoffice) "${BOXOFFICE:-${CARGO_TARGET_DIR:-target}/dist/boxoffice}" mock --log-level error "${option[@]}" --listen "127.0.0.1:${port[$1]}" & ;;
  esac >>"$folder/$1.log" 2>&1
  pid[$1]=$!
}

# Succeeds if a server responds with 200. Without curl, because starting a program would take longer than the measured time.
is_ready() {
  local status
  { exec {socket}<>"/dev/tcp/127.0.0.1/${port[$1]}"; } 2>/dev/null || return 1
  printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nX-API-Key: any\r\nX-Client-Version: 3.0.0\r\nConnection: close\r\n\r\n' "$get" >&"$socket"
  read -rt 5 status <&"$socket" || true
  exec {socket}>&-
  [[ $status == *' 200 '* ]]
}

# Starts a server and waits for its first response; sets `took`, in milliseconds.
start_and_wait() {
  ! is_ready "$1" || fail "Another server is using port ${port[$1]}."
  local started=${EPOCHREALTIME/./}
  start "$1"
  until is_ready "$1"; do
    kill -0 "${pid[$1]}" 2>/dev/null || fail "$1 did not start: $(cat "$folder/$1.log")"
    ((${EPOCHREALTIME/./} - started < 60000000)) || fail "$1 does not respond with 200: $(cat "$folder/$1.log")"
    # A pause without a program: this descriptor never has data.
    read -rt 0.001 <&"$nothing" || true
  done
  took=$(((${EPOCHREALTIME/./} - started) / 1000))
}
exec {nothing}<> <(:)

# Checks that a server validates requests; otherwise the comparison would be unfair.
check() {
  local address=http://127.0.0.1:${port[$1]} status
  expect() {
    status=$(curl -s -o /dev/null -w '%{http_code}' "${HEADERS[@]}" "${@:2}")
    [[ $status == $1 ]] || fail "$server returned $status instead of $1: curl ${*:2}"
  }
  expect 200 "$address$get"
  expect "$created" "$address$post" -H "$JSON" -d "$body"
  expect '4??' "$address$post" -H "$JSON" -d "$wrong"
  expect '4??' "$address$post" -H "$JSON" -d '{}'
}

# Prints the processor time that a server has used, in clock ticks.
ticks() { sed 's/.*) //' "/proc/${pid[$1]}/stat" | awk '{ print $12 + $13 }'; }

# Measures one turn of a server, with a timeout of a minute; sets `rate`, `per_cpu` (requests per second of processor time), `p50` and
# `p99`.
turn() {
  local method=$2 path=$get seconds=$3 out=$folder/wrk before
  [[ $method == GET ]] || path=$post
  before=$(ticks "$1")
  wrk -t1 -c"$CONNECTIONS" -d"$seconds" --timeout 60s --latency "${HEADERS[@]}" -s "$folder/$method.lua" "http://127.0.0.1:${port[$1]}$path" >"$out"
  ! grep -E 'Non-2xx|Socket errors' "$out" || fail "$1 failed under load."
  rate=$(awk '/^Requests\/sec/ { print $2 }' "$out")
  per_cpu=$(awk -v ticks="$(($(ticks "$1") - before))" -v hz="$(getconf CLK_TCK)" '/ requests in / { print $1 * hz / ticks }' "$out")
  p50=$(awk '$1 == "50%" { print $2 }' "$out")
  p99=$(awk '$1 == "99%" { print $2 }' "$out")
}

median() { sort -n | awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'; }

# Prints each server's median, and the ratio of the second to the first.
print_medians() {
  local unit=$1 server all=()
  for server in "${servers[@]}"; do
    all+=("$(median <"$folder/$server.numbers")")
    printf '  %-10s %10.1f %s, median\n' "$server" "${all[-1]}" "$unit"
    rm "$folder/$server.numbers"
  done
  ((${#all[@]} < 2)) || awk "BEGIN { printf \"  ratio      %10.1f\n\", ${all[1]} / ${all[0]} }"
}

command -v wrk >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends wrk; } >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "@stoplight/prism-cli@$PRISM" "@readme/oas-examples@$EXAMPLES" >/dev/null
for server in "${servers[@]}"; do
  case $server in
    prism) ;;
    boxoffice) [[ -n ${BOXOFFICE:-} ]] || cargo build --profile dist --locked --quiet ;;
    *) fail "Unknown server $server. Use prism, boxoffice or both." ;;
  esac
done

echo "$(nproc) cores of $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(uname -sr), load $(cut -d' ' -f1 /proc/loadavg)"
echo "Prism $PRISM on Node $(node --version 2>/dev/null || echo none), $(rustc --version), $( (wrk -v || true) 2>&1 | head -1 | cut -d' ' -f1-2)"
echo "$ROUNDS turns of $TURN s with $CONNECTIONS connections"

for document in $DOCUMENTS; do
  select_document "$document"
  for server in "${servers[@]}"; do
    start_and_wait "$server"
    check "$server"
  done
  for method in GET POST; do
    [[ $method == GET ]] && echo "$document: GET $get" || echo "$document: POST $post"
    for server in "${servers[@]}"; do turn "$server" $method 3; done # warm-up
    for ((round = 1; round <= ROUNDS; round++)); do
      for server in "${servers[@]}"; do
        turn "$server" $method "$TURN"
        printf '  %-10s %10.1f requests/s, %10.1f per CPU second, p50 %s, p99 %s\n' "$server" "$rate" "$per_cpu" "$p50" "$p99"
        echo "$rate" >>"$folder/$server.numbers"
        echo "$per_cpu" >>"$folder/$server.per_cpu"
      done
    done
    print_medians requests/s
    for server in "${servers[@]}"; do mv "$folder/$server.per_cpu" "$folder/$server.numbers"; done
    print_medians "requests per CPU second"
  done
  for server in "${servers[@]}"; do stop "$server"; done

  echo "$document: time from start to the first 200, $STARTS times"
  for ((round = 1; round <= STARTS; round++)); do
    for server in "${servers[@]}"; do
      start_and_wait "$server"
      echo "$took" >>"$folder/$server.numbers"
      stop "$server"
    done
  done
  print_medians ms
done
