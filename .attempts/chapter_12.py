CV = '''
def convolution_values(kernel, size, stride):
    out, c, k, _ = kernel.shape
    m = size // stride
    full = torch.zeros(out, c, size, size, dtype=kernel.dtype)
    full[..., :k, :k] = kernel
    parts = full.reshape(out, c, m, stride, m, stride).permute(0, 1, 3, 5, 2, 4).reshape(out, -1, m, m)
    f = torch.fft.fft2(parts).permute(2, 3, 0, 1)
    return torch.linalg.svdvals(f).flatten().sort(descending=True).values
'''
WRONG = [
("noise_gain", "sum over the n numbers instead of the mean", '''
def noise_gain(weight):
    s = torch.linalg.svdvals(weight)
    return (1 / s ** 2).sum().sqrt()
'''),
("noise_gain", "root forgotten", '''
def noise_gain(weight):
    return torch.linalg.pinv(weight).square().sum() / weight.shape[1]
'''),
("noise_gain", "singular values instead of their inverses", '''
def noise_gain(weight):
    return torch.linalg.svdvals(weight).square().mean().sqrt()
'''),
("noise_gain", "divided by dim: mean over all entries of the pseudo-inverse", '''
def noise_gain(weight):
    return (torch.linalg.pinv(weight).square().sum() / weight.shape[0]).sqrt()
'''),
("noise_gain", "the worst direction instead of the mean", '''
def noise_gain(weight):
    return 1 / torch.linalg.svdvals(weight).min()
'''),
("components_needed", "mean not subtracted", '''
def components_needed(patches, share):
    v = torch.linalg.svdvals(patches) ** 2
    return int((v.cumsum(0) / v.sum() < share).sum()) + 1
'''),
("components_needed", "singular values not squared", '''
def components_needed(patches, share):
    v = torch.linalg.svdvals(patches - patches.mean(0))
    return int((v.cumsum(0) / v.sum() < share).sum()) + 1
'''),
("components_needed", "one too few", '''
def components_needed(patches, share):
    v = torch.linalg.svdvals(patches - patches.mean(0)) ** 2
    return int((v.cumsum(0) / v.sum() < share).sum())
'''),
("components_needed", "eigenvalues in rising order", '''
def components_needed(patches, share):
    v = torch.linalg.eigvalsh(torch.cov(patches.T))
    return int((v.cumsum(0) / v.sum() < share).sum()) + 1
'''),
("forgotten_pattern", "sum of the rows: transpose instead of inverse", '''
def forgotten_pattern(weight):
    p = weight.T @ torch.ones(weight.shape[0], dtype=weight.dtype)
    return p / p.norm()
'''),
("forgotten_pattern", "not scaled to length 1", '''
def forgotten_pattern(weight):
    return torch.linalg.pinv(weight).sum(1)
'''),
("forgotten_pattern", "what the embedding hides: last right singular vector", '''
def forgotten_pattern(weight):
    return torch.linalg.svd(weight)[2][-1]
'''),
("forgotten_pattern", "wrong sign: every feature decreases", '''
def forgotten_pattern(weight):
    p = torch.linalg.pinv(weight) @ torch.ones(weight.shape[0], dtype=weight.dtype)
    return -p / p.norm()
'''),
("estimate_from_noisy", "noise's standard deviation not squared", '''
def estimate_from_noisy(tokens, weight, mean, covariance, noise):
    cw = covariance @ weight.T
    G = cw @ torch.linalg.inv(weight @ cw + noise * torch.eye(len(weight), dtype=weight.dtype))
    return mean + (tokens - weight @ mean) @ G.T
'''),
("estimate_from_noisy", "noise ignored", '''
def estimate_from_noisy(tokens, weight, mean, covariance, noise):
    cw = covariance @ weight.T
    G = cw @ torch.linalg.pinv(weight @ cw)
    return mean + (tokens - weight @ mean) @ G.T
'''),
("estimate_from_noisy", "noise added to the patches' covariance", '''
def estimate_from_noisy(tokens, weight, mean, covariance, noise):
    cw = (covariance + noise ** 2 * torch.eye(len(covariance), dtype=weight.dtype)) @ weight.T
    G = cw @ torch.linalg.inv(weight @ cw)
    return mean + (tokens - weight @ mean) @ G.T
'''),
("estimate_from_noisy", "mean of the tokens not subtracted", '''
def estimate_from_noisy(tokens, weight, mean, covariance, noise):
    cw = covariance @ weight.T
    G = cw @ torch.linalg.inv(weight @ cw + noise ** 2 * torch.eye(len(weight), dtype=weight.dtype))
    return mean + tokens @ G.T
'''),
("convolution_values", "stride ignored: every output kept", CV.replace("m = size // stride", "stride = 1\n    m = size")),
("convolution_values", "not sorted", CV.replace(".sort(descending=True).values", "")),
("convolution_values", "absolute Fourier coefficients instead of singular values of the small matrices", CV.replace("torch.linalg.svdvals(f)", "f.abs()")),
("convolution_values", "builds the whole matrix", '''
def convolution_values(kernel, size, stride):
    out, c, k, _ = kernel.shape
    eye = torch.eye(c * size * size, dtype=kernel.dtype).reshape(-1, c, size, size)
    x = F.pad(eye, (0, k - 1, 0, k - 1), mode="circular")
    return torch.linalg.svdvals(F.conv2d(x, kernel, stride=stride).flatten(1))
'''),
]
RIGHT = [
("noise_gain", "inverse of the Gram matrix", '''
noise_gain = lambda weight: float((torch.linalg.inv(weight.T @ weight).trace() / weight.shape[1]) ** 0.5)
'''),
("estimate_from_noisy", "solve, one token at a time", '''
def estimate_from_noisy(tokens, weight, mean, covariance, noise):
    token_cov = weight @ covariance @ weight.T + noise ** 2 * torch.eye(weight.shape[0], dtype=weight.dtype)
    return torch.stack([mean + covariance @ weight.T @ torch.linalg.solve(token_cov, t - weight @ mean) for t in tokens])
'''),
("components_needed", "a loop over the eigenvalues of the covariance", '''
def components_needed(patches, share):
    values = torch.linalg.eigvalsh(torch.cov(patches.double().T)).flip(0).tolist()
    total, k = 0.0, 0
    while total < share * sum(values):
        total += values[k]
        k += 1
    return k
'''),
]
