"""`lookalike advise` says in ten lines what a run can give; it leaves nothing behind."""


def test_ten_lines(lookalike, photos, tmp_path):
    completed = lookalike("advise", photos)
    assert completed.code == 0, completed.error
    lines = completed.out.splitlines()
    assert len(lines) <= 10
    words = {line.split()[0]: line for line in lines}
    assert words.keys() == {"data", "classes", "recipe", "images", "speed", "minutes", "expect", "why", "next"}
    assert "72 images" in words["data"]
    assert "12 of 12" in words["classes"]
    assert "from scratch" in words["recipe"]
    assert "20 pixels, grey" in words["images"]
    assert "lookalike fit" in words["next"]
    assert "--minutes" in words["next"]
    assert not (tmp_path / "run").exists()


def test_data_that_cannot_be_learnt_from(lookalike, tmp_path):
    (tmp_path / "empty").mkdir()
    lookalike("advise", tmp_path / "empty").refused("empty")
