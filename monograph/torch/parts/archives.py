"""`torch.PyTorchFileReader`: the records of a file that `torch.save` wrote, as bytes."""

from __future__ import annotations

import zipfile
from typing import Any


class PyTorchFileReader:
    """Reads the records of an archive by name, the archive's own folder left out."""

    def __init__(self, name_or_buffer: Any) -> None:
        try:
            self._archive = zipfile.ZipFile(name_or_buffer)
        except zipfile.BadZipFile as problem:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {problem}"
            ) from None
        names = self._archive.namelist()
        self._folder = names[0].partition("/")[0] + "/"

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return [name.removeprefix(self._folder) for name in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return self._folder + name in self._archive.NameToInfo

    def get_record(self, name: str) -> bytes:
        """A record's bytes."""
        if not self.has_record(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return self._archive.read(self._folder + name)

    def serialization_id(self) -> str:
        """What the writer calls this file."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


__all__ = ["PyTorchFileReader"]
