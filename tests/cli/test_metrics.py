"""`dialeval metrics`."""

from __future__ import annotations

from cli.conftest import Dialeval


def test_metrics_lists_and_explains(dialeval: Dialeval) -> None:
    listing = dialeval("metrics").stdout
    assert all(name in listing for name in ("length", "distinct-1", "distinct-2"))
    explained = dialeval("metrics", "distinct-2").stdout
    assert all(word in explained for word in ("Li et al. 2016", "per = corpus", "Edge cases", "distinct-2|n:2"))
    done = dialeval("metrics", "distnct")
    assert done.returncode == 2
    assert "did you mean" in done.stderr


def test_a_name_may_be_asked_for_by_the_command(dialeval: Dialeval) -> None:
    assert dialeval("metrics", "explain", "length").stdout == dialeval("metrics", "length").stdout
    assert "new NAME" in dialeval("metrics", "--help").stdout


def test_an_argument_that_gives_several_things_is_named_once(dialeval: Dialeval) -> None:
    (line,) = (line for line in dialeval("metrics").stdout.splitlines() if line.startswith("inform "))
    assert line.split("  ")[0] == "inform"
    assert " data, predictions " in line
    assert dialeval("metrics", "inform").stdout.count("data (--data)") == 1
