"""`dialeval data`: data packs, large public data in the user's cache."""

from __future__ import annotations

import click

from dialeval.cli import options
from dialeval.cli.output import say, show, tell
from dialeval.cli.progress import download_bar


@options.examples(
    "dialeval data list",
    "dialeval data add glove-6b",
    "dialeval score outputs/ -r references.txt --train train.txt --vectors glove-6b",
)
@click.group()
def data() -> None:
    """Data packs: large public data such as word vectors, kept in the cache with the digests of its files."""


@options.examples(
    "dialeval data add glove-6b",
    "dialeval data add fasttext-en --from downloads/",
    "dialeval data add lsdscc --from LSDSCC/lsdscc/data/test.group.json",
)
@data.command()
@click.argument("name")
@click.option(
    "--from", "from_folder", type=click.Path(), help="Take the files from this folder or file, not from the network."
)
@click.option("--address", help="Download from this address instead of the official one.")
def add(name: str, from_folder: str | None, address: str | None) -> None:
    """Build a pack from its official source over HTTP, or from a local copy. A download that broke off is resumed."""
    from dialeval.resources.packs import add_pack

    with download_bar(name) as progress:
        pack = add_pack(name, address=address, from_folder=from_folder, progress=progress)
    show(f"{pack.path}\n")


@data.command(name="list", epilog="Example: dialeval data list")
def list_() -> None:
    """List the packs that are installed and those that could be."""
    from dialeval.resources.packs import PACK_SOURCES, find_pack

    for name, source in PACK_SOURCES.items():
        pack = find_pack(name)
        state = "not installed" if pack is None else f"installed, {pack.size / 1e6:,.0f} MB, {pack.digest}"
        tell(f"{name:<14}{state:<48}{source.title}")


@data.command(epilog="Example: dialeval data verify glove-6b")
@click.argument("name")
def verify(name: str) -> int:
    """Compare every file of a pack with its digest. Exit status 2 if one differs."""
    from dialeval.resources.packs import verify_pack

    faults = verify_pack(name)
    for fault in faults:
        tell(str(fault))
    if not faults:
        tell(f"{name}: every file is as it was when the pack was added")
    return 2 if faults else 0


@data.command(epilog="Example: dialeval data remove glove-6b")
@click.argument("name")
def remove(name: str) -> None:
    """Delete a pack from the cache."""
    from dialeval.resources.packs import remove_pack

    remove_pack(name)
    say(f"{name}: removed")
