CF = '''
def circular_by_fourier(x, weight):
    rows, columns = x.shape[-2:]
    side = weight.shape[-1]
    w = F.pad(weight, (0, columns - side, 0, rows - side))
    w = w.roll((-(side // 2), -(side // 2)), (-2, -1))
    X, W = torch.fft.fft2(x), torch.fft.fft2(w)
    return torch.fft.ifft2(torch.einsum("ocuv,bcuv->bouv", W.conj(), X)).real
'''
CA = '''
def convolution_by_attention(x, weight, grid, sharpness):
    rows, columns = grid
    t = torch.arange(rows * columns)
    p = torch.stack([t // columns, t % columns], -1).float()
    out = 0
    for a in (-1, 0, 1):
        for b in (-1, 0, 1):
            d = p + torch.tensor([a, b])
            s = -sharpness * torch.cdist(d, p) ** 2
            out = out + s.softmax(-1) @ x @ weight[:, :, a + 1, b + 1].T
    return out
'''
WRONG = [
("convolution_table", "the table transposed: outputs of unit images as rows", '''
def convolution_table(kernel, rows, columns):
    n = rows * columns
    eye = torch.eye(n).reshape(n, 1, rows, columns)
    out = F.conv2d(eye, kernel[None, None], padding=kernel.shape[0] // 2)
    return out.reshape(n, n)
'''),
("convolution_table", "wraps around at the right and left border", '''
def convolution_table(kernel, rows, columns):
    k = kernel.shape[0] // 2
    n = rows * columns
    T = torch.zeros(n, n)
    for r in range(rows):
        for s in range(columns):
            for a in range(-k, k + 1):
                for b in range(-k, k + 1):
                    j = (r + a) * columns + s + b
                    if 0 <= j < n:
                        T[r * columns + s, j] += kernel[a + k, b + k]
    return T
'''),
("convolution_table", "rows and columns of the kernel exchanged", '''
def convolution_table(kernel, rows, columns):
    n = rows * columns
    eye = torch.eye(n).reshape(n, 1, rows, columns)
    return F.conv2d(eye, kernel.T[None, None], padding=len(kernel) // 2).reshape(n, n).T
'''),
("convolution_table", "multiplies locations by rows instead of columns: square images only", '''
def convolution_table(kernel, rows, columns):
    k = kernel.shape[0] // 2
    T = torch.zeros(rows * columns, rows * columns)
    for r in range(rows):
        for s in range(columns):
            for a in range(-k, k + 1):
                for b in range(-k, k + 1):
                    if 0 <= r + a < rows and 0 <= s + b < columns:
                        i, j = r * rows + s, (r + a) * rows + s + b
                        if i < len(T) and j < len(T):
                            T[i, j] = kernel[a + k, b + k]
    return T
'''),
("layers_needed", "rounds down", '''
def layers_needed(kernels, fields):
    return (fields - 1) // (kernels - 1)
'''),
("layers_needed", "forgets the pixel there is without a layer: fields / (k - 1)", '''
def layers_needed(kernels, fields):
    return torch.ceil(fields / (kernels - 1))
'''),
("layers_needed", "each layer widens by k", '''
def layers_needed(kernels, fields):
    return torch.ceil((fields - 1) / kernels)
'''),
("first_and_last", "walks from the lowest layer to the highest", '''
def first_and_last(layers, i):
    a = b = torch.tensor(float(i))
    for k, s, p in layers:
        a, b = a * s - p, b * s - p + k - 1
    return torch.stack([a, b])
'''),
("first_and_last", "padding ignored", '''
def first_and_last(layers, i):
    a = b = torch.tensor(float(i))
    for k, s, p in layers.flip(0):
        a, b = a * s, b * s + k - 1
    return torch.stack([a, b])
'''),
("first_and_last", "last pixel one too far: + k instead of k - 1", '''
def first_and_last(layers, i):
    a = b = torch.tensor(float(i))
    for k, s, p in layers.flip(0):
        a, b = a * s - p, b * s - p + k
    return torch.stack([a, b])
'''),
("merged_kernel", "identity forgotten", '''
def merged_kernel(w3, w1):
    return w3 + F.pad(w1, (1, 1, 1, 1))
'''),
("merged_kernel", "1x1 weight broadcast over all nine offsets", '''
def merged_kernel(w3, w1):
    out = w3 + w1
    out[:, :, 1, 1] += torch.eye(len(w3))
    return out
'''),
("merged_kernel", "ones for all pairs of channels instead of the identity matrix", '''
def merged_kernel(w3, w1):
    out = w3.clone()
    out[:, :, 1, 1] += w1[:, :, 0, 0] + 1
    return out
'''),
("merged_kernel", "changes w3 in place", '''
def merged_kernel(w3, w1):
    w3[:, :, 1, 1] += w1[:, :, 0, 0] + torch.eye(len(w3))
    return w3
'''),
("circular_by_fourier", "kernel not flipped: no conjugate", CF.replace("W.conj()", "W")),
("circular_by_fourier", "kernel not centred: no roll", CF.replace("    w = w.roll((-(side // 2), -(side // 2)), (-2, -1))\n", "")),
("circular_by_fourier", "rolled in the wrong direction", CF.replace("(-(side // 2), -(side // 2))", "(side // 2, side // 2)")),
("convolution_by_attention", "offset of the wrong sign", CA.replace("p + torch.tensor", "p - torch.tensor")),
("convolution_by_attention", "distance not squared", CA.replace(" ** 2", "")),
("convolution_by_attention", "mean over the heads instead of the sum", CA.replace("return out", "return out / 9")),
("convolution_by_attention", "rows and columns of the filter exchanged", CA.replace("a + 1, b + 1", "b + 1, a + 1")),
]
RIGHT = [
("convolution_table", "jacobian of conv2d", '''
def convolution_table(kernel, rows, columns):
    f = lambda v: F.conv2d(v.view(1, 1, rows, columns), kernel[None, None], padding=kernel.shape[-1] // 2).flatten()
    return torch.func.jacrev(f)(torch.zeros(rows * columns, dtype=kernel.dtype))
'''),
("layers_needed", "minus floor of minus", '''
def layers_needed(kernels, fields):
    return -((1 - fields) // (kernels - 1))
'''),
("first_and_last", "receptive field formula with Python numbers", '''
def first_and_last(layers, i):
    low = high = i
    for layer in reversed(layers.tolist()):
        kernel, stride, padding = map(int, layer)
        low = low * stride - padding
        high = high * stride - padding + (kernel - 1)
    return torch.tensor([low, high], dtype=torch.float32)
'''),
("merged_kernel", "einsum with a delta, dirac init", '''
def merged_kernel(w3, w1):
    identity = torch.nn.init.dirac_(torch.empty_like(w3))
    delta = torch.zeros(3, 3, dtype=w3.dtype)
    delta[1, 1] = 1
    return w3 + w1 * delta + identity
'''),
("convolution_by_attention", "scores from a dot product of expanded squares", '''
def convolution_by_attention(x, weight, grid, sharpness):
    r, c = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
    p = torch.stack([r.flatten(), c.flatten()], 1).to(x.dtype)
    offsets = torch.cartesian_prod(torch.arange(-1, 2), torch.arange(-1, 2)).to(x.dtype)
    q = p[None] + offsets[:, None]
    scores = -sharpness * (q[:, :, None] - p[None, None]).pow(2).sum(-1)
    return torch.einsum("hij,bjd,odh->bio", scores.softmax(2), x, weight.flatten(2))
'''),
]
