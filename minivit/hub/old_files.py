"""Files from before ablations were operations, when they were fields of the configuration."""

from typing import Any


def current(said: dict[str, Any]) -> dict[str, Any]:
    """What a file says beside its numbers, with such fields of a ViT or a Mixer as ``removed``."""
    config = said.get("config")
    if said.get("family", "ViT") not in ("ViT", "Mixer") or not isinstance(config, dict):
        return said
    config = dict(config)
    removed = []
    residual = config.pop("residual", True)
    # A norm that nothing read was left out with its branch.
    unread = residual is not False and config.get("norm") != "post"
    for part, norm in ("attention", "norm1"), ("mlp", "norm2"):
        if config.pop(part, True) is False:
            removed += [[part, None], [norm, None]] if unread else [[part, None]]
    if config.get("norm") == "none" or "mixing_hidden" in config:
        removed += [["norm", None]] if config.pop("norm", "pre") == "none" else []
    if residual is False:
        removed.append(["residual", None])
    if config.get("positions") == "none" and "mixing_hidden" not in config:
        del config["positions"]
        removed.append(["positions", None])
    return {"removed": removed, **said, "config": config}
