"""Tools for torch programs that are not ours: planting, watching, replay, timing."""
