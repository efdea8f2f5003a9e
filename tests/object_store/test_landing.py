"""Landing files in the store: the same patterns mean the same files as in a folder; content is what was listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise.settings import Settings
from partwise.sources.files import ListedFile
from partwise.workspace import Workspace
from spark_jobs.ingest.files import in_store
from spark_jobs.ingest.files.find import RefusedFile, listing, look, look_into, matches, still_growing
from spark_jobs.ingest.files.layout import Layout
from spark_jobs.ingest.files.links import linked
from tests.object_store.store import Lake

NAMES = [
    "orders/2026-10-03.csv",
    "orders/2026-10-04.csv",
    "orders/a[1].csv",
    "orders/x.json",
    "orders/.hidden.csv",
    "orders/_temporary/0.csv",
    "orders/sub/deep.csv",
    "orders/sub/sub/deeper.csv",
    "orders/one.csv.gz",
    "orders/half.csv.tmp",
    "products.csv",
]
PATTERNS = [
    "orders/*.csv",
    "orders/2026-10-0?.csv",
    "orders/2026-10-0[34].csv",
    "orders/2026-10-0[!3].csv",
    "orders/{x.json,one.csv.gz}",
    "orders/a[1].csv",
    "orders/**/*.csv",
    "orders/*/*.csv",
    "orders/",
    "*.csv",
    "products.csv",
    "nothing/*.csv",
    "orders/nothing.csv",
]


@pytest.fixture
def place(lake: Lake, tmp_path: Path) -> Workspace:
    for name in NAMES:
        lake.bucket().put(f"landing/{name}", name.encode())
    return Workspace(tmp_path, Settings(landing=f"{lake.url}/landing", warehouse=f"{lake.url}/warehouse"))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_mean_the_same_files_as_in_a_folder(place: Workspace, tmp_path: Path, pattern: str) -> None:
    folder = tmp_path / "folder"
    for name in NAMES:
        (folder / "landing" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "landing" / name).write_text(name)
    expected = listing(Workspace(folder, Settings()), (f"landing/{pattern}",))
    found = listing(place, (f"landing/{pattern}",))
    assert [url.partition("/landing/")[2] for url in found] == [name.removeprefix("landing/") for name in expected]
    assert all(name == url for name, url in found.items())


def test_markers_are_found_in_the_store(lake: Lake, place: Workspace) -> None:
    from partwise.parts import Parts, parse_part
    from spark_jobs.ingest.closing import markers

    lake.bucket().put("landing/orders/2026-10-03T10-05.done", b"")
    assert markers(place, "landing/orders/{part}.done", 60) == Parts.single(parse_part("2026-10-03T10:05", 60))


def test_each_folder_is_listed_once(lake: Lake, place: Workspace) -> None:
    found = listing(place, ("landing/orders/*.csv", "landing/products.csv"))
    lake.server.forget()
    looks = look(found)
    assert set(looks) == set(found)
    assert len(lake.server.requests()) == 2


def test_other_content_has_another_look_even_in_the_same_second(lake: Lake, place: Workspace) -> None:
    url = f"{lake.url}/landing/products.csv"
    seen = look({url: url})[url]
    lake.bucket().put("landing/products.csv", b"products_csv")
    assert look({url: url})[url] != seen
    lake.bucket().put("landing/products.csv", b"products.csv")
    assert look({url: url})[url].size == seen.size


def test_an_upload_in_pieces_shows_when_it_is_whole(lake: Lake, place: Workspace) -> None:
    """Started, one piece in, never ended: nobody may see it. Young objects are not looked at twice."""
    client, bucket, name = lake.server.client(), lake.url.removeprefix("s3://"), "landing/orders/big.csv"
    upload = client.create_multipart_upload(Bucket=bucket, Key=name)["UploadId"]
    piece = {"Bucket": bucket, "Key": name, "UploadId": upload}
    part = client.upload_part(**piece, PartNumber=1, Body=b"a,b\n1,2\n")
    found = listing(place, ("landing/orders/*.csv",))
    assert not any(url.endswith("big.csv") for url in found)
    assert still_growing(found, look(found), settle=60) == frozenset()
    client.complete_multipart_upload(**piece, MultipartUpload={"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]})
    assert any(url.endswith("big.csv") for url in listing(place, ("landing/orders/*.csv",)))


def test_a_file_is_looked_into_through_a_copy_that_goes(lake: Lake, place: Workspace) -> None:
    lake.bucket().put("landing/orders/good.csv", b"event_time,item\n2026-10-03,a\n")
    url = f"{lake.url}/landing/orders/good.csv"
    found = look_into(url, look({url: url})[url])
    assert (found.url, found.layout) == (url, (("event_time", "string"), ("item", "string")))
    copy = Path(found.path)
    assert copy.read_bytes() == b"event_time,item\n2026-10-03,a\n"
    del found
    assert not copy.exists()


def test_an_object_that_changed_since_it_was_listed_is_left_for_later(lake: Lake, place: Workspace) -> None:
    url = f"{lake.url}/landing/products.csv"
    seen = look({url: url})[url]
    lake.bucket().put("landing/products.csv", b"x\n1\n")
    with pytest.raises(FileNotFoundError):
        look_into(url, seen)
    lake.bucket().remove("landing/products.csv")
    with pytest.raises(FileNotFoundError):
        in_store.fetched(url, ListedFile(url, 1, 1))


def test_spark_reads_copies_beside_the_tables_under_plain_names(lake: Lake, place: Workspace) -> None:
    url = f"{lake.url}/landing/orders/a[1].csv"
    found = look_into(url, look({url: url})[url])
    layout = Layout("csv", found.layout)
    with linked(place, "orders", "b1", [(7, found, layout)]) as links:
        assert links.paths[7][1] == f"{lake.url}/warehouse/_ingest/orders/b1/0/7.csv"
        assert lake.bucket().get("warehouse/_ingest/orders/b1/0/7.csv") == b"orders/a[1].csv"
    assert lake.names("warehouse") == []


def test_files_of_this_disk_reach_executors_that_do_not_see_it(lake: Lake, tmp_path: Path) -> None:
    here = Workspace(tmp_path, Settings(warehouse=f"{lake.url}/warehouse"))
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing/a[1].csv").write_text("x\n1\n")
    [(name, path)] = listing(here, ("landing/*.csv",)).items()
    found = look_into(path, look({name: path})[name])
    layout = Layout("csv", found.layout)
    with linked(here, "orders", "b1", [(7, found, layout)], lambda: False) as links:
        assert links.paths[7][1] == f"{lake.url}/warehouse/_ingest/orders/b1/0/7.csv"
        assert lake.bucket().get("warehouse/_ingest/orders/b1/0/7.csv") == b"x\n1\n"
    assert lake.names() == []
    with linked(here, "orders", "b1", [(7, found, layout)]) as links:
        assert Path(links.paths[7][1]).read_bytes() == b"x\n1\n"
    assert lake.names() == []


def test_files_to_make_a_source_of_again_are_looked_for_in_the_store(lake: Lake, place: Workspace) -> None:
    """With one listing a folder."""
    from partwise.rebuild import file_sizes

    (place.folder / "local.csv").write_text("x")
    names = [f"{lake.url}/landing/{name}" for name in ("orders/x.json", "orders/gone.csv", "orders/a[1].csv")]
    lake.server.forget()
    found = file_sizes(place, [*names, "local.csv", "nothing.csv"])
    assert found == {names[0]: 13, names[2]: 15, "local.csv": 1}
    assert len(lake.server.requests()) == 1


def test_other_stores_are_refused_with_what_to_do(place: Workspace) -> None:
    with pytest.raises(RefusedFile, match="files are loaded from folders and from s3://"):
        matches(place, "gs://bucket/x.csv")
