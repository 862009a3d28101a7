"""What schemathesis can't read in the contract: our formats, the rules that no schema says, and what answers told of."""

import atexit
import copy
import json
import random
import re
import uuid
from collections import Counter
from datetime import date, datetime
from urllib.parse import parse_qs, urlsplit

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.core.parameters import ParameterLocation
from schemathesis.openapi.checks import RejectedPositiveData

# Most of all moments are centuries from now, so that half of them are taken from those that a sale or an event may have.
MOMENTS = st.datetimes() | st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1))
FORMATS = {
    "birth-date": st.dates(date(1900, 1, 1), date(2020, 1, 1)).map(str),
    "event-time": MOMENTS.map(lambda moment: moment.isoformat(timespec="seconds")),
    # A pixel.
    "image": st.just("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC"),
}
for name, values in FORMATS.items():
    schemathesis.openapi.format(name, values)

# What every server of the contract does, the mock as well: the contract's introduction tells it once for all schemas.
BLANK_MISSING = "what is required, or may not be blank, counts as missing where it is blank"
BLANK_ABSENT = "what is optional counts as absent where it is blank and its schema refuses blanks"
NO_BODY = "no body at all counts as one without any argument"
CHANGED = "If-Match names another state of the resource than its own"
NO_HTTP = "a header with control characters is no HTTP: 400 without a body"
NUL = "must not contain the character NUL"
UNSEEN = "must not contain the character U+"

# The characters that are not displayed (`Default_Ignorable_Code_Point`), and the blank pattern of Braille, for a regular expression.
INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

# Why the platform alone refuses an argument that its schema allows, in its words.
RULES = [
    "names? (no|a) .+",
    "is no subcategory of the category",
    "must (be|end) after .+|must not be (before|less than) .+",
    "must be another account",
    "can't be changed",
    "must be a date from 1900-01-01 to today, .+",
    "must be in the future",
    "is among the most common passwords: choose another one",
    "must not be the account's own username or e-mail address: choose another one",
    "must be a regular expression|is too large a regular expression",
    "must have at most [0-9]+ tickets in all",
    "must be at most [0-9.]+, which is outstanding",
    "is none of the gateway's",
    "is not the one that was sent",
    "is [0-9]+ × [0-9]+ pixels, but .+",
]
# What a payment needs besides, by its method.
NEEDED = {"card": "token", "external": "reference"}

# What a property refers to by a URI, and what by the identifier alone.
BY_URI = {
    "category": "/categories/{category}",
    "host": "/hosts/{host}",
    "items": "/sections/{section}",
    "region": "/regions/{region}",
    "sections": "/events/{event}/sections/{section}",
    "venue": "/venues/{venue}",
}
BY_IDENTIFIER = {
    "account": "/accounts/{number}",
    "customer": "/accounts/{number}",
    "event": "/events/{event}",
    "recipient": "/accounts/{number}",
    "serials": "serial",
    "tickets": "serial",
    "zones": "/zones/{zone}",
}
# What begins before it ends.
PERIODS = [("start", "end"), ("salesStart", "salesEnd"), ("availableFrom", "availableTo")]


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Learns the paths. A format of ours counts without the pattern beside it, as most that match that are no dates."""
    shapes.update({path: re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path) for path in raw_schema["paths"] if "{" in path})
    stack = [raw_schema]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if item.get("format") in FORMATS:
                item.pop("pattern", None)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


# How many failures each rule explained.
explained = Counter()


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Whether a failure counts: not where rules that the contract tells in words explain all of it."""
    rules = set()
    if is_no_http(response):
        rules = {NO_HTTP}
    elif isinstance(failure, RejectedPositiveData) and response.status_code == 400:
        fields = response.json().get("fields", [])
        # All that is wrong with one argument is told in one detail.
        rules = {rule_of_refusal(case, field["name"], part) for field in fields for part in field["detail"].split("; ")}
    elif isinstance(failure, RejectedPositiveData) and response.status_code == 412 and "If-Match" in response.request.headers:
        rules = {CHANGED} if response.json()["code"] == "resource.changed" else set()
    elif isinstance(failure, AcceptedNegativeData) and not response.request.body and takes_nothing(case.operation.body):
        rules = {NO_BODY}
    elif isinstance(failure, AcceptedNegativeData) and is_wrong_by_blanks_alone(case, response):
        rules = {BLANK_ABSENT}
    if not rules or None in rules:
        return True
    explained.update(rules)
    return False


@atexit.register
def print_explained():
    """Ends a run with how many failures were dropped, and why; one that several rules explain counts for each."""
    for rule, count in explained.most_common():
        print(f"Filtered {count:4}: {rule}")


def rule_of_refusal(case, name, detail):
    """The rule by which an argument was refused that its schema allows; none where it was refused by mistake."""
    body = case.body if isinstance(case.body, dict) else {}
    value = {**case.path_parameters, **case.query, **body}.get(name)
    if detail == "is required":
        if case.path.endswith("/payments") and name == NEEDED.get(body.get("method")):
            return f"{name} is required by this method of payment"
        return BLANK_MISSING if is_blank(value) else None
    if detail == NUL:
        return NUL if r"\u0000" in json.dumps(value) else None
    if detail.startswith(UNSEEN):
        character = chr(int(detail.removeprefix(UNSEEN), 16))
        return UNSEEN if character in json.dumps(value, ensure_ascii=False) or json.dumps(character)[1:-1] in json.dumps(value) else None
    return next((rule for rule in RULES if re.fullmatch(rule, detail)), None)


def is_no_http(response):
    """Whether a request could not be read for a control character in its headers, which the server answers without a body."""
    values = (value.decode("latin-1") if isinstance(value, bytes) else value for value in response.request.headers.values())
    has_control = any(re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value) for value in values)
    return has_control and response.status_code == 400 and not response.content


def takes_nothing(bodies):
    """Whether a body without any argument would do."""
    return any(body.is_valid({}) for body in bodies)


def is_wrong_by_blanks_alone(case, response):
    """Whether a request fits the contract once its blank arguments are taken out, those apart that may not be blank."""
    if any(case.meta.is_negative_at(location) for location in (ParameterLocation.PATH, ParameterLocation.HEADER)):
        return False
    # As it was sent: what schemathesis made may have come to nothing on the way.
    query = parse_qs(urlsplit(response.request.url).query, keep_blank_values=True)
    arguments = case.body if isinstance(case.body, dict) else {}
    if not any(is_blank(value) for value in [*arguments.values(), *sum(query.values(), [])]):
        return False
    if not all(is_valid_or_blank(parameter, query.get(parameter.name, [])) for parameter in case.operation.query):
        return False
    if not case.meta.is_negative_at(ParameterLocation.BODY):
        return True
    body = case.operation.body[0]
    may_not_be_blank = body.raw_schema.get("x-not-blank", [])
    return isinstance(case.body, dict) and body.is_valid(
        {name: value for name, value in arguments.items() if name in may_not_be_blank or not is_blank(value)}
    )


def is_valid_or_blank(parameter, texts):
    """Whether a query may say this of a parameter, apart from what is blank."""
    texts = [text for text in texts if not is_blank(text)]
    return not texts or len(texts) == 1 and (parameter.is_valid(texts[0]) or parameter.is_valid(from_json(texts[0])))


def from_json(text):
    """What a text says as JSON; none where it isn't."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def is_blank(value):
    """Whether a value is a text of white space and invisible characters alone; Python's own `strip` takes off more."""
    return isinstance(value, str) and not re.search(rf"[^\s{INVISIBLE}]|[\x1c-\x1f]", value)


# What the URI of each path is like. By path, the variables of the resources that an answer told of, and by "serial" the tickets.
# The URIs of those that were removed: others may go on telling of them. The tag that each URI was last answered with.
shapes, seen, gone, tags = {}, {}, set(), {}
# Which resource is named next is the same in each run, as far as the server's answers are.
choice = random.Random(1)


@schemathesis.hook
def after_call(context, case, response):
    """Remembers what answers tell of; schemathesis would only follow links."""
    if case.method == "DELETE" and response.status_code < 300:
        gone.add(case.formatted_path)
        seen.get(case.path, {}).pop(case.formatted_path, None)
    if response.status_code == 404 and "page" not in case.query or b'"resource.not-yours"' in response.content:
        # It may have gone along with another, or be somebody else's.
        for template in templates_of(case):
            seen[template].pop(template.format(**case.path_parameters), None)
    if "etag" in response.headers and not urlsplit(response.request.url).query:
        [path] = response.headers.get("location", [case.formatted_path])
        [tags[path]] = response.headers["etag"]
    if response.headers.get("content-type") != ["application/json"]:
        return
    for uri in re.findall(r'"(/[^"]+)"', response.text):
        for template, shape in shapes.items():
            if (found := re.fullmatch(shape, uri)) and uri not in gone:
                seen.setdefault(template, {})[uri] = found.groupdict()
    for serial in re.findall(r'"serial":"([^"]+)"', response.text):
        seen.setdefault("serial", {})[serial] = {}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Asks for what is there, about what is there, where any value would do and this one is not known to be there or removed."""
    if case.meta is None:
        return
    if not case.meta.is_negative_at(ParameterLocation.PATH):
        name_in_path(case)
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        # What schemathesis made is shown, and may be sent, once more.
        case.body = copy.deepcopy(case.body)
        name_in_body(case)
        put_in_order(case.body)
    if case.headers and not case.meta.is_negative_at(ParameterLocation.HEADER):
        tell_states_and_requests_apart(case)


def name_in_path(case):
    """Names resources that are there."""
    for template in templates_of(case):
        resources = seen[template]
        if resources and template.format(**case.path_parameters) not in gone.union(resources):
            case.path_parameters = dict(resources[choose(resources)])


def templates_of(case):
    """The paths of what was seen that have all variables of this one and are where it begins."""
    return [path for path in seen if path.count("{") == case.path.count("{") and f"{case.path}/".startswith(f"{path}/")]


def name_in_body(case):
    """Names resources that are there, those of the path's own event where it has one."""
    for name, template in {**BY_URI, **BY_IDENTIFIER}.items():
        value, resources = case.body.get(name), seen.get(template, {})
        known = {*resources, *map(identifier, resources)}
        near = [uri for uri, variables in resources.items() if agree(variables, case.path_parameters)]
        if value and near and not known.intersection([value] if isinstance(value, str) else value):
            uri = choose(near)
            text = uri if name in BY_URI else identifier(uri)
            if isinstance(value, dict):
                case.body[name] = {text: next(iter(value.values()))}
            else:
                case.body[name] = text if isinstance(value, str) else [text]


def put_in_order(body):
    """Has what begins end later."""
    for period in [body, *(body.get("schedule") or [])]:
        for begin, end in PERIODS:
            if str(period.get(begin, "")) >= str(period.get(end, "~")):
                period[end] = "2040-01-01T00:00"


def identifier(uri):
    """What a URI ends with."""
    return uri.rsplit("/", 1)[-1]


def agree(variables, others):
    """Whether what is in both is the same."""
    return all(others.get(name, value) == value for name, value in variables.items())


def choose(resources):
    """One of those that were told of most lately."""
    return choice.choice(list(resources)[-10:])


def tell_states_and_requests_apart(case):
    """Takes the tag that the resource was last answered with, and a key for each request that the same one has again."""
    for name in {"If-Match", "If-None-Match"}.intersection(case.headers):
        case.headers[name] = tags.get(case.formatted_path, case.headers[name])
    if "Idempotency-Key" in case.headers:
        request = case.method, case.formatted_path, case.query, case.media_type, case.body
        case.headers["Idempotency-Key"] = str(uuid.uuid5(uuid.NAMESPACE_URL, repr(request)))
