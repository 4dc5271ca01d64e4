"""The kinds of field that certificates have, each with its bounds: nothing outside of them is read."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
Text = Annotated[str, StringConstraints(max_length=4000)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0, lt=2**53)]
FilePath = Annotated[str, StringConstraints(pattern=r"^(faces/)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}$")]
