"""What schemathesis can't read in the contract: our formats, the rules that no schema says, and what `self` leads to."""

import atexit
import json
import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.core.parameters import ParameterLocation
from schemathesis.openapi.checks import RejectedPositiveData

FORMATS = {
    "birth-date": st.dates().map(str),
    "event-time": st.datetimes().map(lambda moment: moment.isoformat(timespec="seconds")),
    # A pixel.
    "image": st.just("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC"),
}
for name, values in FORMATS.items():
    schemathesis.openapi.format(name, values)

# What every server of the contract does, the mock as well: the contract's introduction tells it once for all schemas.
BLANK_MISSING = "what is required, or may not be blank, counts as missing where it is blank"
BLANK_ABSENT = "what is optional counts as absent where it is blank and its schema refuses blanks"
NO_BODY = "no body at all counts as one without any argument"
NUL = "must not contain the character NUL"
UNSEEN = "must not contain the character U+"

# Why the platform alone refuses an argument that its schema allows, in its words.
RULES = [
    "names? (no|a) .+",
    "is no subcategory of the category",
    "must (be|end) after .+|must not be (before|less than) .+",
    "must be somebody else",
    "can't be changed",
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


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Where a pattern stands beside a format of ours, values come from the format: most that match the pattern are no dates."""
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
    if isinstance(failure, RejectedPositiveData) and response.status_code == 400:
        fields = response.json().get("fields", [])
        # All that is wrong with one argument is told in one detail.
        rules = {rule_of_refusal(case, field["name"], part) for field in fields for part in field["detail"].split("; ")}
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
    """Whether a value is a text of white space alone, as Unicode has it; Python's own `strip` takes off more."""
    return isinstance(value, str) and not re.search(r"[^\s]|[\x1c-\x1f]", value)


# The variables of each path that a resource of the server's was seen at, and the URIs of those that were removed: others may go
# on telling of them.
seen, gone = {}, set()


@schemathesis.hook
def after_call(context, case, response):
    """Remembers where the resources are that an answer tells of; schemathesis would only follow links."""
    if case.method == "DELETE" and response.status_code < 300:
        gone.add(case.formatted_path)
        seen.get(case.path, {}).pop(case.formatted_path, None)
    if response.status_code == 404:
        # It may have gone along with another.
        for template, resources in seen.items():
            if f"{case.path}/".startswith(f"{template}/"):
                resources.pop(template.format(**case.path_parameters), None)
    for template in {operation.ok().path for operation in case.operation.schema.get_all_operations()}:
        shape = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", template)
        for uri in re.findall(rb'"self":"([^"]+)"', response.content):
            if (found := re.fullmatch(shape, uri.decode())) and found.group() not in gone:
                seen.setdefault(template, {})[found.group()] = found.groupdict()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Asks for a resource that is there, where any would do and this one is not known to be there or to have been removed."""
    if case.meta is None or case.meta.is_negative_at(ParameterLocation.PATH):
        return
    for template, resources in seen.items():
        if resources and template.count("{") == case.path.count("{") and f"{case.path}/".startswith(f"{template}/"):
            if template.format(**case.path_parameters) not in gone.union(resources):
                case.path_parameters = dict(list(resources.values())[-1])
