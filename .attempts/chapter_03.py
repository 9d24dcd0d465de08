WRONG = [
("add_positions", "changes the input in place", '''
def add_positions(tokens, table):
    tokens[:, 1:] += table
    return tokens
'''),
("add_positions", "drops the class token", '''
def add_positions(tokens, table):
    return tokens[:, 1:] + table
'''),
("add_positions", "adds the table to the first tokens, so the class token gets a position and the last patch none", '''
def add_positions(tokens, table):
    out = tokens.clone()
    out[:, :-1] += table
    return out
'''),
("add_positions", "puts the class token at the end", '''
def add_positions(tokens, table):
    return torch.cat([tokens[:, 1:] + table, tokens[:, :1]], dim=1)
'''),
("move_by", "moves backwards: sign of the sine wrong", '''
def move_by(p, steps):
    dim = p.shape[-1]
    w = 10000 ** (-torch.arange(0, dim, 2) / dim)
    s, c = p[:, 0::2], p[:, 1::2]
    sin, cos = torch.sin(w * steps), torch.cos(w * steps)
    return torch.stack([s * cos - c * sin, c * cos + s * sin], -1).flatten(1)
'''),
("move_by", "sines first and cosines after, not alternating", '''
def move_by(p, steps):
    dim = p.shape[-1]
    w = 10000 ** (-torch.arange(0, dim, 2) / dim)
    s, c = p[:, 0::2], p[:, 1::2]
    sin, cos = torch.sin(w * steps), torch.cos(w * steps)
    return torch.cat([s * cos + c * sin, c * cos - s * sin], -1)
'''),
("move_by", "frequencies as 10000^(-i/dim): exponent half as large", '''
def move_by(p, steps):
    dim = p.shape[-1]
    w = 10000 ** (-torch.arange(dim // 2) / dim)
    s, c = p[:, 0::2], p[:, 1::2]
    sin, cos = torch.sin(w * steps), torch.cos(w * steps)
    return torch.stack([s * cos + c * sin, c * cos - s * sin], -1).flatten(1)
'''),
("move_by", "cosine rule with a plus: cos cos + sin sin", '''
def move_by(p, steps):
    dim = p.shape[-1]
    w = 10000 ** (-torch.arange(0, dim, 2) / dim)
    s, c = p[:, 0::2], p[:, 1::2]
    sin, cos = torch.sin(w * steps), torch.cos(w * steps)
    return torch.stack([s * cos + c * sin, c * cos + s * sin], -1).flatten(1)
'''),
("resample_linear", "align_corners left at False", '''
def resample_linear(table, old_grid, new_grid):
    R, C = old_grid
    grid = table[1:].T.reshape(1, -1, R, C)
    new = F.interpolate(grid, size=tuple(new_grid), mode="bilinear")
    return torch.cat([table[:1], new.flatten(2)[0].T])
'''),
("resample_linear", "reshapes to channels first without transposing", '''
def resample_linear(table, old_grid, new_grid):
    R, C = old_grid
    grid = table[1:].reshape(1, -1, R, C)
    new = F.interpolate(grid, size=tuple(new_grid), mode="bilinear", align_corners=True)
    return torch.cat([table[:1], new.reshape(-1, table.shape[1])])
'''),
("resample_linear", "bicubic instead of bilinear", '''
def resample_linear(table, old_grid, new_grid):
    grid = rearrange(table[1:], "(r c) d -> 1 d r c", r=old_grid[0])
    new = F.interpolate(grid, size=tuple(new_grid), mode="bicubic", align_corners=True)
    return torch.cat([table[:1], rearrange(new, "1 d r c -> (r c) d")])
'''),
("resample_linear", "loses the class token's row", '''
def resample_linear(table, old_grid, new_grid):
    grid = rearrange(table[1:], "(r c) d -> 1 d r c", r=old_grid[0])
    new = F.interpolate(grid, size=tuple(new_grid), mode="bilinear", align_corners=True)
    return rearrange(new, "1 d r c -> (r c) d")
'''),
("relative_bias", "query minus key: directions reversed", '''
def relative_bias(table, grid):
    R, C = grid
    i = torch.arange(R * C)
    r, c = i // C, i % C
    return table[r[:, None] - r[None] + R - 1, c[:, None] - c[None] + C - 1]
'''),
("relative_bias", "no offset added, negative indices wrap around", '''
def relative_bias(table, grid):
    R, C = grid
    i = torch.arange(R * C)
    r, c = i // C, i % C
    return table[r[None] - r[:, None], c[None] - c[:, None]]
'''),
("relative_bias", "row and column from the number of rows: i // R, i % R", '''
def relative_bias(table, grid):
    R, C = grid
    i = torch.arange(R * C)
    r, c = i % R, i // R
    return table[r[None] - r[:, None] + R - 1, c[None] - c[:, None] + C - 1]
'''),
("rotary_2d", "halves swapped: first half by the column", '''
def rotary_2d(x, grid):
    R, C = grid
    h = x.shape[-1] // 2
    i = torch.arange(R * C)
    w = 10000.0 ** (-torch.arange(0, h, 2) / h)
    def turn(y, t):
        a = t[:, None] * w
        u, v = y[..., 0::2], y[..., 1::2]
        return torch.stack([u * a.cos() - v * a.sin(), u * a.sin() + v * a.cos()], -1).flatten(-2)
    return torch.cat([turn(x[..., :h], i % C), turn(x[..., h:], i // C)], -1)
'''),
("rotary_2d", "pairs number i with i + h/2 as GPT-NeoX does, not neighbours", '''
def rotary_2d(x, grid):
    R, C = grid
    h = x.shape[-1] // 2
    i = torch.arange(R * C)
    w = 10000.0 ** (-torch.arange(0, h, 2) / h)
    def turn(y, t):
        a = t[:, None] * w
        u, v = y.chunk(2, -1)
        return torch.cat([u * a.cos() - v * a.sin(), u * a.sin() + v * a.cos()], -1)
    return torch.cat([turn(x[..., :h], i // C), turn(x[..., h:], i % C)], -1)
'''),
("rotary_2d", "turns in the opposite direction", '''
def rotary_2d(x, grid):
    R, C = grid
    h = x.shape[-1] // 2
    i = torch.arange(R * C)
    w = 10000.0 ** (-torch.arange(0, h, 2) / h)
    def turn(y, t):
        a = t[:, None] * w
        u, v = y[..., 0::2], y[..., 1::2]
        return torch.stack([u * a.cos() + v * a.sin(), v * a.cos() - u * a.sin()], -1).flatten(-2)
    return torch.cat([turn(x[..., :h], i // C), turn(x[..., h:], i % C)], -1)
'''),
("rotary_2d", "frequencies from d_head instead of the half's width", '''
def rotary_2d(x, grid):
    R, C = grid
    d = x.shape[-1]
    h = d // 2
    i = torch.arange(R * C)
    w = 10000.0 ** (-torch.arange(0, h, 2) / d)
    def turn(y, t):
        a = t[:, None] * w
        u, v = y[..., 0::2], y[..., 1::2]
        return torch.stack([u * a.cos() - v * a.sin(), u * a.sin() + v * a.cos()], -1).flatten(-2)
    return torch.cat([turn(x[..., :h], i // C), turn(x[..., h:], i % C)], -1)
'''),
]
RIGHT = [
("add_positions", "pads the table with a row of zeros", '''
add_positions = lambda tokens, table: tokens + F.pad(table, (0, 0, 1, 0))
'''),
("move_by", "complex numbers", '''
def move_by(p, steps):
    n, dim = p.shape
    z = torch.complex(p[:, 1::2].double(), p[:, ::2].double())  # cos + i sin
    angle = steps * torch.pow(10000.0, -torch.arange(dim // 2, dtype=torch.float64) * 2 / dim)
    z = z * torch.exp(1j * angle)
    return torch.view_as_real(z).flip(-1).reshape(n, dim).to(p.dtype)
'''),
("relative_bias", "four loops", '''
def relative_bias(table, grid):
    R, C = grid
    bias = torch.zeros(R * C, R * C, dtype=table.dtype)
    for a in range(R):
        for b in range(C):
            for c in range(R):
                for d in range(C):
                    bias[a * C + b, c * C + d] = table[c - a + R - 1, d - b + C - 1]
    return bias
'''),
("resample_linear", "a matrix of weights for each axis", '''
def resample_linear(table, old_grid, new_grid):
    def weights(old, new):
        at = torch.linspace(0, old - 1, new, dtype=table.dtype) if new > 1 else torch.zeros(1, dtype=table.dtype)
        return (1 - (at[:, None] - torch.arange(old)).abs()).clamp(min=0)
    g = table[1:].unflatten(0, tuple(old_grid))
    g = torch.einsum("ar,bc,rcd->abd", weights(old_grid[0], new_grid[0]), weights(old_grid[1], new_grid[1]), g)
    return torch.cat((table[:1], g.flatten(0, 1)))
'''),
]
