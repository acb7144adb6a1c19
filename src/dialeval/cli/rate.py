"""`dialeval rate`: a page or a server on which people rate drawn rows, and what they said put together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialeval.cli import options
from dialeval.cli.output import check_places, print_as, print_warnings, say, show, tell, write

if TYPE_CHECKING:
    from dialeval.reports.rating_server import RatingServer

_FORM = click.option("--form", type=options.FILE, help="What is asked, in TOML.  [default: overall, from 1 to 5]")


@options.examples(
    "dialeval rate page to-rate/ -o rate.html",
    "dialeval rate serve to-rate/ --raters ann,bob,cy --per-row 2 --db ratings.sqlite",
    "dialeval rate merge ann.jsonl bob.jsonl --sample to-rate/ -o ratings.jsonl",
)
@click.group()
def rate() -> None:
    """Have people rate the rows that `dialeval sample` drew."""


@options.examples(
    "dialeval rate page to-rate/ -o rate.html",
    "dialeval rate page to-rate/ --form form.toml -o rate.html",
)
@rate.command()
@click.argument("sample", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "--output", type=options.FILE, required=True, help="Write the page to this file.")
@_FORM
def page(sample: str, output: Path, form: Path | None) -> None:
    """Write one HTML file on which people rate the rows of the folder SAMPLE, without a network.

    Send it to every rater. It does not tell the systems; order and sides differ between raters. Ratings are kept in the
    browser until the rater downloads them as a file and sends it back.
    """
    from dialeval.analysis.sampling import read_sample
    from dialeval.reports.rating_page import rating_page, read_form, things_to_rate

    check_places(None, sample, form, files=(output,))
    drawn, asked = read_sample(sample), read_form(form)
    write(output, rating_page(drawn, asked).encode())
    say(f"{len(things_to_rate(drawn, asked))} to rate; what comes back is put together by `dialeval rate merge`")


@options.examples(
    "dialeval rate merge ann.jsonl bob.jsonl --sample to-rate/ -o ratings.jsonl",
    "dialeval rate merge ratings.sqlite --sample to-rate/ --adjudicate disputed.html",
    "dialeval rate merge *.jsonl --sample to-rate/ --adjudicated eve.jsonl -o ratings.jsonl",
)
@rate.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=options.FILE, help="Write the ratings, or pairs for `rank`, to this file (JSONL).")
@click.option("--sample", type=click.Path(), help="The folder that the rated rows were drawn into.")
@click.option("--quality", default="overall", help="Of pairs, the question whose answers -o takes.")
@click.option("--adjudicate", type=options.FILE, help="Write a page on which to rate the disputed rows once more.")
@click.option("--adjudicated", multiple=True, type=click.Path(), help="Ratings from that page; they alone count then.")
@click.option("--most", type=click.IntRange(min=1), default=20, help="Disputed rows.")
@_FORM
@click.option("--any-scores", is_flag=True, help="Ratings by another tool: accept any qualities and any numbers.")
@options.format_(("table", "json", "md"))
def merge(
    files: tuple[str, ...],
    output: Path | None,
    sample: str | None,
    quality: str,
    adjudicate: Path | None,
    adjudicated: tuple[str, ...],
    most: int,
    form: Path | None,
    any_scores: bool,
    format_: str,
) -> None:
    """Put the ratings of several raters together: FILES they sent back, or the database of `dialeval rate serve`.

    Prints how far raters agree, with each other and with themselves, and the rows on which they differ most. With
    --sample the written ratings have their texts and systems, and `meta`, `adem train` and `rank` read them alone.
    Scores that are no answer to the form are refused, and so are rows and pairs that are not in the sample. A rater's
    first answer to a row counts, and of several first answers the last one.
    """
    import orjson

    from dialeval.analysis.merged_ratings import merge_ratings, rated_rows
    from dialeval.analysis.sampling import read_sample
    from dialeval.reports import people
    from dialeval.reports.rating_page import rating_page, read_form, score_check

    if any_scores and form is not None:
        raise click.UsageError("--any-scores accepts what --form would refuse; give one of them")
    if adjudicate is not None and sample is None:
        raise click.UsageError("--adjudicate shows rows; name the folder that they were drawn into (--sample)")
    check_places(None, files, adjudicated, sample, form, files=(output, adjudicate))
    drawn = None if sample is None else read_sample(sample)
    asked = read_form(form)
    check = None if any_scores else score_check(None if form is None else asked, drawn)
    merged = merge_ratings(files, drawn, adjudicated, most, check)
    rows = rated_rows(merged, drawn, quality)
    print_as(format_, people, merged)
    print_warnings(merged.warnings)
    if output is not None:
        write(output, b"".join(orjson.dumps(row) + b"\n" for row in rows))
    if adjudicate is not None and drawn is not None:
        disputed = [each.id for each in merged.disputed]
        if not disputed:
            say("raters differ on no row; there is no page to write")
            return
        write(adjudicate, rating_page(drawn, asked, disputed).encode())


@options.examples(
    "dialeval rate serve to-rate/ --raters ann,bob,cy --per-row 2",
    "dialeval rate serve to-rate/                      goes on where it stopped, with the same links",
    "dialeval rate merge to-rate/ratings.sqlite --sample to-rate/ -o ratings.jsonl",
)
@rate.command()
@click.argument("sample", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--db", "database", type=options.FILE, help="Keep ratings in this file.  [default: ratings.sqlite in SAMPLE]"
)
@click.option("--raters", metavar="NAMES", default="", help="Who rates, by commas; others may be added later.")
@click.option("--per-row", type=click.IntRange(min=1), help="Raters that each row gets.  [default: all]")
@click.option("--host", default="127.0.0.1", help="The address of this machine that raters reach it by.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="0: any free port.  [default: that of the last time if it is free]"
)
@_FORM
def serve(
    sample: str, database: Path | None, raters: str, per_row: int | None, host: str, port: int | None, form: Path | None
) -> None:
    """Serve the page to a team, with a link of their own for each rater, until Ctrl-C.

    A rating is on the disk before it is acknowledged; until then the page keeps it in the browser and sends it again.
    Links stay the same when the server is started again. `dialeval rate export` writes the ratings at any time.
    """
    from dialeval.analysis.rating_store import LONGEST_NAME, SUFFIXES, RatingStore
    from dialeval.analysis.sampling import ROWS_FILE, SAMPLE_FILE, read_sample
    from dialeval.reports.rating_page import digest_of, read_form, things_to_rate
    from dialeval.reports.rating_server import RatingServer, is_loopback

    names = list(dict.fromkeys(name.strip() for name in raters.split(",") if name.strip()))
    if any(len(name) > LONGEST_NAME for name in names):
        raise click.UsageError(f"names of raters have at most {LONGEST_NAME} characters")
    database = database or Path(sample) / "ratings.sqlite"
    if database.suffix not in SUFFIXES:
        raise click.UsageError(f"--db is a file that ends in {', '.join(SUFFIXES)}, so that `rate merge` knows it")
    check_places(None, Path(sample) / SAMPLE_FILE, Path(sample) / ROWS_FILE, form, files=(database,))
    local = is_loopback(host)
    drawn, asked = read_sample(sample), read_form(form)
    digest, things = digest_of(drawn, asked), things_to_rate(drawn, asked)
    store = RatingStore(database, digest)
    try:
        store.add_raters(names)
        if not store.raters():
            raise click.UsageError("name who rates: --raters ann,bob")
        store.deal([thing["id"] for thing in things], per_row, drawn.design.seed)
        with _start(partial(RatingServer, store, asked, digest, things, host), port, store.port) as server:
            store.port = server.port
            if not local:
                print_warnings(["whoever reaches this address and has a link can rate; nothing is encrypted"])
            with suppress(KeyboardInterrupt):  # from the first link on, which is when somebody may press it
                for name, link in server.links().items():
                    tell(f"{name:<16} {link}")
                say("each rater has a link; Ctrl-C ends")
                server.serve_forever()
        for name, (rated, dealt) in store.counts().items():
            say(f"{name}: {rated} of {dealt} rated")
    finally:
        store.close()


def _start(serve_at: Callable[[int], RatingServer], port: int | None, last: int) -> RatingServer:
    """Listen on a port; where none was named on that of the last time, or on any free one."""
    from dialeval.core.errors import SettingError

    if port is not None:
        return serve_at(port)
    try:
        return serve_at(last)
    except SettingError:
        if not last:
            raise
        server = serve_at(0)
        print_warnings([f"port {last} is taken: links differ from those of the last time"])
        return server


@options.examples(
    "dialeval rate export to-rate/ratings.sqlite -o ratings.jsonl",
)
@rate.command()
@click.argument("database", type=click.Path())
@options.output_file
def export(database: str, output: Path | None) -> None:
    """Write the ratings in the DATABASE of `dialeval rate serve` as JSON lines, also while the server runs.

    Each line has the id of the row, the rater and the scores, as raters send them back from a page.
    """
    import orjson

    from dialeval.analysis.rating_store import stored_lines

    check_places(None, database, files=(output,))
    lines = [orjson.dumps(line).decode() + "\n" for _, line in stored_lines(database)]
    show("".join(lines), output)
    say(f"{len(lines)} ratings")
