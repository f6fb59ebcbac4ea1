"""Validates a speedscope file against the published schema: SCHEMA FILE. Prints what it holds."""

import json
import sys

import jsonschema

schema, path = sys.argv[1:]
with open(schema) as file:
    schema = json.load(file)
with open(path) as file:
    data = json.load(file)
jsonschema.validators.validator_for(schema).check_schema(schema)
jsonschema.validate(data, schema)
frames = data["shared"]["frames"]
out = []
for profile in data["profiles"]:
    assert len(profile["samples"]) == len(profile["weights"])
    assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
    assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
    out.append({"unit": profile["unit"], "sum": sum(profile["weights"])})
print(json.dumps({"profiles": out, "names": [frame["name"] for frame in frames]}))
