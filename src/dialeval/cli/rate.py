"""`dialeval rate`: a page or a server on which people rate drawn rows, and what they said put together."""

from __future__ import annotations

from pathlib import Path

import click

from dialeval.cli import options
from dialeval.cli.output import check_places, say, write

_FORM = click.option("--form", type=options.FILE, help="What is asked, in TOML.  [default: overall, from 1 to 5]")


@options.examples(
    "dialeval rate page to-rate/ -o rate.html",
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
    from dialeval.analysis.sample_folder import read_sample
    from dialeval.reports.rating_form import read_form
    from dialeval.reports.rating_page import rating_page, things_to_rate

    check_places(None, sample, form, files=(output,))
    drawn, asked = read_sample(sample), read_form(form)
    write(output, rating_page(drawn, asked).encode())
    say(f"{len(things_to_rate(drawn, asked))} to rate; what comes back is put together by `dialeval rate merge`")
