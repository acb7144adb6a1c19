"""A printed document has the fields that its schema names; `test_schemas` validates whole ones."""

from __future__ import annotations

from dataclasses import fields

from dialeval.analysis.difference import Settings
from dialeval.reports import printed_schemas


def test_no_field_of_what_is_written_is_forgotten() -> None:
    assert {field.name for field in fields(Settings)} <= set(printed_schemas.Comparison.__struct_fields__)
