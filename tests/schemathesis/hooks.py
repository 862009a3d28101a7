"""What schemathesis can't read in the contract: our formats, the rules that no schema says, and what `self` leads to."""

import re
from urllib.parse import parse_qsl, urlsplit

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

# Why an argument is refused that its schema allows, in the server's words.
RULES = re.compile(
    r"names? |must be (after|somebody else)|must end after |must not be (before|less than) |must be at most .* which is outstanding"
    r"|must not contain the character NUL|is not the one that was sent|is none of the gateway's|is no subcategory|can't be changed"
    r"|is .* pixels, but |must be a regular expression|is too large a regular expression"
)
# What a payment lacks depends on its method.
MAY_LACK = {"token", "reference"}


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


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Whether a failure counts: not where a rule that the contract tells in words explains it."""
    if isinstance(failure, RejectedPositiveData):
        return not is_ruled_out(case, response)
    if isinstance(failure, AcceptedNegativeData):
        query = parse_qsl(urlsplit(response.request.url).query, keep_blank_values=True)
        return not has_blank(dict(query)) and not has_blank(case.body)
    return True


def is_ruled_out(case, response):
    """Whether every argument that was refused was refused by a rule."""
    body = response.json()
    return bool(body.get("fields")) and all(
        field["name"] in MAY_LACK or has_blank(case.body, field["name"])
        if field["problem"] == "missing"
        else RULES.match(field["detail"])
        for field in body["fields"]
    )


def has_blank(arguments, name=None):
    """Whether an argument, this one or any, is blank: one that is required then counts as missing, another as absent."""
    values = arguments.items() if isinstance(arguments, dict) else []
    return any(isinstance(value, str) and not value.strip() for key, value in values if name in (None, key))


# The variables of each path that a resource of the server's was seen at.
seen = {}


@schemathesis.hook
def after_call(context, case, response):
    """Remembers where the resources are that an answer tells of; schemathesis would only follow links."""
    for template in {operation.ok().path for operation in case.operation.schema.get_all_operations()}:
        shape = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", template)
        for uri in re.findall(rb'"self":"([^"]+)"', response.content):
            if found := re.fullmatch(shape, uri.decode()):
                seen.setdefault(template, {})[uri] = found.groupdict()
    if case.method == "DELETE" and response.status_code < 300:
        seen.get(case.path, {}).pop(case.formatted_path.encode(), None)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Asks for a resource that is there, where any would do."""
    if case.meta is None or case.meta.is_negative_at(ParameterLocation.PATH):
        return
    for template, resources in seen.items():
        if resources and template.count("{") == case.path.count("{") and f"{case.path}/".startswith(f"{template}/"):
            case.path_parameters = dict(list(resources.values())[-1])
