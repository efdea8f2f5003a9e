"""Delta's jars in `.jars`, checked by SHA-256; those for object stores in `.jars/object_store`, if somebody needs them.

They come from the local Maven repository when it has them, else through Ivy, which Spark itself brings along and which
knows Maven Central; the user's mirror in `~/.m2/settings.xml` is respected. Ivy gets settings and a cache of its own:
with the usual ones it stops when the local Maven repository holds a description without its jar.
"""

import hashlib
import os
import re
import shutil
import tempfile
import urllib.parse
import xml.etree.ElementTree as xml
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from trouble import Trouble, run, say


@dataclass(frozen=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def maven_path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file}"


#: A setting that puts something into an object store.
_ASKS = re.compile(r"""^(?:(?:warehouse|landing):\s*["']?s3://|store:)""", re.MULTILINE)


def wants_object_store(root: Path, environment: Mapping[str, str]) -> bool:
    """Whether a workspace asks for it: one that is named, or the project's own. Once fetched, the jars are kept."""
    if environment.get("OBJECT_STORE", "0") not in ("", "0", "no", "false") or (root / ".jars/object_store").is_dir():
        return True
    if any(environment.get(f"PARTWISE_{name}", "").startswith("s3://") for name in ("WAREHOUSE", "LANDING")):
        return True
    folders = [environment.get("WORKSPACE"), environment.get("PARTWISE_WORKSPACE"), "."]
    files = (root / folder / "partwise.yaml" for folder in folders if folder)
    return any(_ASKS.search(file.read_text(errors="replace")) for file in files if file.is_file())


def listed(root: Path, file: str = "spark_jobs/jars.txt") -> list[Jar]:
    lines = (root / file).read_text().splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return [Jar(*coordinates.split(":"), sha256) for coordinates, sha256 in rows]


def is_sound(path: Path, jar: Jar) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
    except OSError:
        return False


def ensure(root: Path, java_home: Path) -> bool:
    """Puts every listed jar, and no other jar, into `.jars`; True when there was something to do."""
    worked = ensure_group(root, java_home, ".jars", "spark_jobs/jars.txt", "Delta")
    if wants_object_store(root, os.environ):
        worked |= ensure_group(
            root, java_home, ".jars/object_store", "spark_jobs/jars_object_store.txt", "object stores"
        )
    return worked


def ensure_group(root: Path, java_home: Path, name: str, file: str, what: str) -> bool:
    folder, wanted = root / name, listed(root, file)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [jar for jar in wanted if not is_sound(folder / jar.file, jar)]
    # A jar of an earlier version beside the new one would put both on Spark's class path.
    for other in {path.name for path in folder.glob("*.jar")} - {jar.file for jar in wanted}:
        (folder / other).unlink()
    if not missing:
        return False
    say(f"fetching {len(missing)} jars for {what}")
    with tempfile.TemporaryDirectory(dir=root, prefix=".jars-") as scratch:
        fetched = Path(scratch)
        copy_from_maven_repository(missing, fetched)
        still = [jar for jar in missing if not is_sound(fetched / jar.file, jar)]
        if still:
            fetch_with_ivy(root, java_home, still, fetched)
        for jar in missing:
            if not is_sound(fetched / jar.file, jar):
                raise Trouble(f"{jar.file} came with other content than {file} says; check the Maven mirror")
            (fetched / jar.file).replace(folder / jar.file)
    return True


def copy_from_maven_repository(jars: list[Jar], into: Path) -> None:
    for jar in jars:
        local = Path.home() / ".m2/repository" / jar.maven_path
        if is_sound(local, jar):
            shutil.copyfile(local, into / jar.file)


def fetch_with_ivy(root: Path, java_home: Path, jars: list[Jar], into: Path) -> None:
    ivy = next(iter((root / ".venv").glob("lib/python3*/site-packages/pyspark/jars/ivy-*.jar")), None)
    if ivy is None:
        raise Trouble("Spark's jars are not in .venv; remove .venv and try again")
    settings, module = into / "ivysettings.xml", into / "ivy.xml"
    settings.write_text(ivy_settings(into / "cache", mirror()))
    module.write_text(ivy_module(jars))
    pattern = f"{into}/[artifact]-[revision].[ext]"
    java = [java_home / "bin/java", *proxy_options(), "-cp", ivy, "org.apache.ivy.Main"]
    task = ["-settings", settings, "-ivy", module, "-types", "jar", "bundle", "-retrieve", pattern]
    run([*java, *task], "fetching jars")


def ivy_settings(cache: Path, repository: str) -> str:
    # Without `root` Ivy's own default is used, which is Maven Central.
    where = f"root={quoteattr(repository)} " if repository else ""
    return f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(cache))}/>
  <resolvers><ibiblio name="maven" m2compatible="true" {where}/></resolvers>
</ivysettings>
"""


def ivy_module(jars: list[Jar]) -> str:
    rows = "\n".join(
        f'    <dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false"'
        f' conf="default->master,default"/>'
        for jar in jars
    )
    return f"""<ivy-module version="2.0">
  <info organisation="partwise" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{rows}
  </dependencies>
</ivy-module>
"""


def mirror() -> str:
    """The user's mirror of Maven Central: MAVEN_MIRROR, or the one in Maven's settings; empty when there is none."""
    if named := os.environ.get("MAVEN_MIRROR"):
        return named
    try:
        tree = xml.parse(Path.home() / ".m2/settings.xml")
    except (OSError, xml.ParseError):
        return ""
    for element in tree.iter():
        if element.tag.rpartition("}")[2] == "mirror":
            fields = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in element}
            covers = [part.strip() for part in fields.get("mirrorOf", "").split(",")]
            if {"central", "*", "external:*"} & set(covers) and "!central" not in covers and fields.get("url"):
                return fields["url"]
    return ""


def proxy_options() -> list[str]:
    """Java does not read the proxy variables that everything else on a machine follows."""
    options = []
    for scheme in ("http", "https"):
        named = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme}_proxy".upper())
        if named:
            url = urllib.parse.urlsplit(named if "//" in named else f"//{named}")
            options += [f"-D{scheme}.proxyHost={url.hostname}", f"-D{scheme}.proxyPort={url.port or 3128}"]
    return options
