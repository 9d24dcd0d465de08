WRONG = [
("neighbourhood", "k patches to each side instead of k // 2", '''
def neighbourhood(rows, columns, k):
    i = torch.arange(rows * columns)
    r, c = i // columns, i % columns
    return ((r[:, None] - r).abs() <= k) & ((c[:, None] - c).abs() <= k)
'''),
("neighbourhood", "a diamond: sum of the distances", '''
def neighbourhood(rows, columns, k):
    i = torch.arange(rows * columns)
    r, c = i // columns, i % columns
    return (r[:, None] - r).abs() + (c[:, None] - c).abs() <= k // 2
'''),
("neighbourhood", "distance of patch numbers: wraps at the row's end", '''
def neighbourhood(rows, columns, k):
    i = torch.arange(rows * columns)
    d = (i[:, None] - i)[..., None]
    h = k // 2
    offsets = torch.tensor([a * columns + b for a in range(-h, h + 1) for b in range(-h, h + 1)])
    return (d == offsets).any(-1)
'''),
("neighbourhood", "strictly less than k // 2", '''
def neighbourhood(rows, columns, k):
    i = torch.arange(rows * columns)
    r, c = i // columns, i % columns
    return ((r[:, None] - r).abs() < k // 2) & ((c[:, None] - c).abs() < k // 2)
'''),
("neighbourhood", "divides by rows", '''
def neighbourhood(rows, columns, k):
    i = torch.arange(rows * columns)
    r, c = i // rows, i % rows
    return ((r[:, None] - r).abs() <= k // 2) & ((c[:, None] - c).abs() <= k // 2)
'''),
("neighbourhood", "or instead of and", '''
def neighbourhood(rows, columns, k):
    i = torch.arange(rows * columns)
    r, c = i // columns, i % columns
    return ((r[:, None] - r).abs() <= k // 2) | ((c[:, None] - c).abs() <= k // 2)
'''),
("shifted_windows", "wraps around: roll of the grid", '''
def shifted_windows(rows, columns, window, shift):
    i = torch.arange(rows * columns)
    r, c = (i // columns - shift) % rows // window, (i % columns - shift) % columns // window
    return (r[:, None] == r) & (c[:, None] == c)
'''),
("shifted_windows", "shift added instead of subtracted", '''
def shifted_windows(rows, columns, window, shift):
    i = torch.arange(rows * columns)
    r, c = (i // columns + shift) // window, (i % columns + shift) // window
    return (r[:, None] == r) & (c[:, None] == c)
'''),
("shifted_windows", "shift ignored", '''
def shifted_windows(rows, columns, window, shift):
    i = torch.arange(rows * columns)
    r, c = i // columns // window, i % columns // window
    return (r[:, None] == r) & (c[:, None] == c)
'''),
("shifted_windows", "truncates toward zero: first window joined with the rest before it", '''
def shifted_windows(rows, columns, window, shift):
    i = torch.arange(rows * columns)
    r = ((i // columns - shift) / window).int()
    c = ((i % columns - shift) / window).int()
    return (r[:, None] == r) & (c[:, None] == c)
'''),
("shifted_windows", "rows only: windows as wide as the grid", '''
def shifted_windows(rows, columns, window, shift):
    i = torch.arange(rows * columns)
    r = (i // columns - shift) // window
    return r[:, None] == r
'''),
("static_mixing", "no softmax", '''
def static_mixing(x, scores, values, out):
    v = (x @ values).unflatten(-1, (len(scores), -1))
    return torch.einsum("hij,bjhd->bihd", scores, v).flatten(2) @ out
'''),
("static_mixing", "softmax over the wrong axis", '''
def static_mixing(x, scores, values, out):
    v = (x @ values).unflatten(-1, (len(scores), -1))
    return torch.einsum("hij,bjhd->bihd", scores.softmax(1), v).flatten(2) @ out
'''),
("static_mixing", "scores scaled by the root of the head's width", '''
def static_mixing(x, scores, values, out):
    v = (x @ values).unflatten(-1, (len(scores), -1))
    w = (scores / v.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("hij,bjhd->bihd", w, v).flatten(2) @ out
'''),
("static_mixing", "values forgotten", '''
def static_mixing(x, scores, values, out):
    v = x.unflatten(-1, (len(scores), -1))
    return torch.einsum("hij,bjhd->bihd", scores.softmax(-1), v).flatten(2) @ out
'''),
("alternate", "attention before convolution in each pair", '''
def alternate(blocks, attention):
    return tuple("c" * (b - 2 * a) + "ac" * a for b, a in zip(blocks, attention))
'''),
("alternate", "attention at the end in one piece", '''
def alternate(blocks, attention):
    return tuple("c" * (b - a) + "a" * a for b, a in zip(blocks, attention))
'''),
("alternate", "counted from the beginning", '''
def alternate(blocks, attention):
    return tuple("ca" * a + "c" * (b - 2 * a) for b, a in zip(blocks, attention))
'''),
("alternate", "returns a list", '''
def alternate(blocks, attention):
    return ["c" * (b - 2 * a) + "ca" * a for b, a in zip(blocks, attention)]
'''),
("follow_rules", "from the first stage to the last", '''
def follow_rules(score):
    kept, best = "000", score("000")
    for i in range(3):
        t = kept[:i] + "1" + kept[i + 1 :]
        s = score(t)
        if s > best:
            kept, best = t, s
    return kept
'''),
("follow_rules", "best score not updated", '''
def follow_rules(score):
    kept, best = "000", score("000")
    for i in (2, 1, 0):
        t = kept[:i] + "1" + kept[i + 1 :]
        if score(t) > best:
            kept = t
    return kept
'''),
("follow_rules", "keeps at a tie", '''
def follow_rules(score):
    kept, best = "000", score("000")
    for i in (2, 1, 0):
        t = kept[:i] + "1" + kept[i + 1 :]
        s = score(t)
        if s >= best:
            kept, best = t, s
    return kept
'''),
("follow_rules", "tries all eight", '''
def follow_rules(score):
    from itertools import product
    return max(("".join(t) for t in product("01", repeat=3)), key=score)
'''),
("follow_rules", "each stage tried alone, not beside what was kept", '''
def follow_rules(score):
    base = score("000")
    kept = ["0", "0", "0"]
    for i in (2, 1, 0):
        t = "0" * i + "1" + "0" * (2 - i)
        if score(t) > base:
            kept[i] = "1"
    return "".join(kept)
'''),
("follow_rules", "stops at the first stage that does not help", '''
def follow_rules(score):
    kept, best = "000", score("000")
    for i in (2, 1, 0):
        t = kept[:i] + "1" + kept[i + 1 :]
        s = score(t)
        if s <= best:
            break
        kept, best = t, s
    return kept
'''),
]
RIGHT = [
("neighbourhood", "max pooling of unit images", '''
def neighbourhood(rows, columns, k):
    n = rows * columns
    eye = torch.eye(n).view(n, 1, rows, columns)
    return torch.nn.functional.max_pool2d(eye, k, stride=1, padding=k // 2).view(n, n) > 0
'''),
("shifted_windows", "bucketize and loops", '''
def shifted_windows(rows, columns, window, shift):
    label = {}
    for r in range(rows):
        for c in range(columns):
            label[r * columns + c] = ((r - shift) // window, (c - shift) // window)
    n = rows * columns
    return torch.tensor([[label[i] == label[j] for j in range(n)] for i in range(n)])
'''),
("follow_rules", "a list of characters, from the last stage, cached", '''
def follow_rules(score):
    seen = {"000": score("000")}
    kept = ["0", "0", "0"]
    for i in reversed(range(3)):
        trial = kept.copy()
        trial[i] = "1"
        seen["".join(trial)] = score("".join(trial))
        if seen["".join(trial)] > seen["".join(kept)]:
            kept = trial
    return "".join(kept)
'''),
]
