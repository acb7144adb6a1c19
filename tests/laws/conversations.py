"""The world of conversations: contexts of several turns, some of them questions and some of them said before."""

from __future__ import annotations

from hypothesis import strategies as st

from laws.responses import Row, columns, resources
from laws.worlds import World

turns = st.sampled_from(["", "?", "yes", "no", "why?", "the cat sat on the mat.", "is it late? I think so", "你好吗？"])

WORLD = World(
    rows=st.builds(Row, turns, st.just(()), st.lists(turns, max_size=6).map(tuple)),
    columns=columns,
    resources=resources,
    lone={"empty": Row(""), "no context": Row("yes", context=()), "question alone": Row("why?", context=("why?",))},
    rich=[
        Row("at noon. why?", (), ("when is it?", "why?", "when is it again?")),
        Row("the cat sat", (), ("is it late?", "the cat sat on a mat. is it?", "no?")),
    ],
)
