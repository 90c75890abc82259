#!/usr/bin/env python3
"""Checks JSON documents against a schema: check_schema.py SCHEMA FILE...

Needs python3-jsonschema. Exit code 0: all are valid, 1: one is not, 2: wrong usage or unreadable file.
Also makes sure that the schema is strict: an object that lets unknown members in would let a misspelt one
pass.
"""
import json
import sys

import jsonschema


def loose_objects(schema, path="#"):
    """Paths of object schemas without additionalProperties: false."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is not False:
            yield path
        for key, value in schema.items():
            yield from loose_objects(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from loose_objects(value, f"{path}/{index}")


def reject_constant(name):
    raise ValueError(f"{name} is not JSON")


def load(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file, parse_constant=reject_constant)


def main(arguments):
    if len(arguments) < 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        schema = load(arguments[0])
        documents = [(name, load(name)) for name in arguments[1:]]
    except (OSError, ValueError) as error:
        print(f"check_schema: {error}", file=sys.stderr)
        return 2
    validator_class = jsonschema.validators.validator_for(schema)
    validator_class.check_schema(schema)
    bad = 0
    for path in loose_objects(schema):
        print(f"{arguments[0]}: {path} lets unknown members in")
        bad += 1
    validator = validator_class(schema)
    for name, document in documents:
        for error in sorted(validator.iter_errors(document), key=lambda e: list(map(str, e.path))):
            where = "/".join(map(str, error.absolute_path))
            print(f"{name}: {where}: {error.message[:300]}")
            bad += 1
    print(f"{len(documents)} documents, {bad} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
