WRONG = [
("patchify", "reshapes without reordering the axes", '''
def patchify(images, patch):
    b, c, h, w = images.shape
    return images.reshape(b, (h // patch) * (w // patch), c * patch * patch)
'''),
("patchify", "channel innermost instead of first", '''
def patchify(images, patch):
    return rearrange(images, "b c (r h) (s w) -> b (r s) (h w c)", h=patch, w=patch)
'''),
("patchify", "patches column by column", '''
def patchify(images, patch):
    return rearrange(images, "b c (r h) (s w) -> b (s r) (c h w)", h=patch, w=patch)
'''),
("patchify", "uses the number of rows for both sides: square images only", '''
def patchify(images, patch):
    b, c, h, w = images.shape
    n = h // patch
    x = images.reshape(b, c, n, patch, n, patch)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(b, n * n, c * patch * patch)
'''),
("patchify", "each patch transposed: pixels column by column", '''
def patchify(images, patch):
    b, c, h, w = images.shape
    x = images.reshape(b, c, h // patch, patch, w // patch, patch)
    return x.permute(0, 2, 4, 1, 5, 3).reshape(b, -1, c * patch * patch)
'''),
("patchify", "unfold's result not transposed: numbers before patches", '''
def patchify(images, patch):
    return F.unfold(images, patch, stride=patch)
'''),
("convolution_weight", "reshapes the transposed matrix directly, as if the channel stood outermost", '''
def convolution_weight(matrix, channels, size):
    return matrix.T.reshape(-1, channels, size, size)
'''),
("convolution_weight", "rows and columns of the patch exchanged", '''
def convolution_weight(matrix, channels, size):
    m = matrix.reshape(size, size, channels, -1)
    return m.permute(3, 2, 1, 0)
'''),
("convolution_weight", "reshapes to the target shape without moving dim to the front", '''
def convolution_weight(matrix, channels, size):
    dim = matrix.shape[1]
    return matrix.reshape(dim, channels, size, size)
'''),
("merged_tokens", "channel outermost within a merged token, as in patchify", '''
def merged_tokens(tokens, rows, columns):
    return rearrange(tokens, "b (r h s w) d -> b (r s) (d h w)", h=2, w=2, r=rows // 2, s=columns // 2)
'''),
("merged_tokens", "within a merged token top left, bottom left, top right, bottom right", '''
def merged_tokens(tokens, rows, columns):
    b, n, d = tokens.shape
    g = tokens.reshape(b, rows, columns, d)
    parts = [g[:, 0::2, 0::2], g[:, 1::2, 0::2], g[:, 0::2, 1::2], g[:, 1::2, 1::2]]
    return torch.cat(parts, -1).reshape(b, n // 4, 4 * d)
'''),
("merged_tokens", "merges four tokens in a row instead of 2 x 2", '''
def merged_tokens(tokens, rows, columns):
    b, n, d = tokens.shape
    return tokens.reshape(b, n // 4, 4 * d)
'''),
("padded_patches", "adds a whole row of patches where the patches already divide the image", '''
def padded_patches(images, size):
    h, w = images.shape[-2:]
    x = F.pad(images, (0, size - w % size, 0, size - h % size))
    return F.unfold(x, size, stride=size).mT
'''),
("padded_patches", "pads above and on the left", '''
def padded_patches(images, size):
    h, w = images.shape[-2:]
    x = F.pad(images, (-w % size, 0, -h % size, 0))
    return F.unfold(x, size, stride=size).mT
'''),
("padded_patches", "pads height with the columns' number and width with the rows'", '''
def padded_patches(images, size):
    h, w = images.shape[-2:]
    x = F.pad(images, (0, -h % size, 0, -w % size))
    x = x[..., : h + -h % size, : w + -w % size]
    return F.unfold(x, size, stride=size).mT
'''),
("padded_patches", "crops what does not fit instead of padding", '''
def padded_patches(images, size):
    h, w = images.shape[-2:]
    x = images[..., : h // size * size, : w // size * size]
    return F.unfold(x, size, stride=size).mT
'''),
("padded_patches", "repeats the border instead of adding zeros", '''
def padded_patches(images, size):
    h, w = images.shape[-2:]
    x = F.pad(images, (0, -w % size, 0, -h % size), mode="replicate")
    return F.unfold(x, size, stride=size).mT
'''),
("denoised", "does not divide by the number of windows at each pixel", '''
def denoised(images, size, stride, keep):
    x = F.unfold(images, size, stride=stride).mT
    mean = x.mean(1, keepdim=True)
    _, _, v = torch.linalg.svd(x - mean, full_matrices=False)
    v = v[:, :keep]
    y = (x - mean) @ v.mT @ v + mean
    return F.fold(y.mT, images.shape[-2:], size, stride=stride)
'''),
("denoised", "forgets to add the mean patch again", '''
def denoised(images, size, stride, keep):
    x = F.unfold(images, size, stride=stride).mT
    mean = x.mean(1, keepdim=True)
    _, _, v = torch.linalg.svd(x - mean, full_matrices=False)
    v = v[:, :keep]
    y = ((x - mean) @ v.mT @ v).mT
    count = F.fold(torch.ones_like(y), images.shape[-2:], size, stride=stride)
    out = F.fold(y, images.shape[-2:], size, stride=stride)
    return torch.where(count > 0, out / count.clamp(min=1), images)
'''),
("denoised", "pixels in no window become zero", '''
def denoised(images, size, stride, keep):
    x = F.unfold(images, size, stride=stride).mT
    mean = x.mean(1, keepdim=True)
    _, _, v = torch.linalg.svd(x - mean, full_matrices=False)
    v = v[:, :keep]
    y = ((x - mean) @ v.mT @ v + mean).mT
    count = F.fold(torch.ones_like(y), images.shape[-2:], size, stride=stride)
    return F.fold(y, images.shape[-2:], size, stride=stride) / count.clamp(min=1)
'''),
("denoised", "one set of components for the whole batch", '''
def denoised(images, size, stride, keep):
    x = F.unfold(images, size, stride=stride).mT
    mean = x.mean(1, keepdim=True)
    z = x - mean
    _, _, v = torch.linalg.svd(z.flatten(0, 1), full_matrices=False)
    v = v[:keep]
    y = (z @ v.T @ v + mean).mT
    count = F.fold(torch.ones_like(y), images.shape[-2:], size, stride=stride)
    out = F.fold(y, images.shape[-2:], size, stride=stride)
    return torch.where(count > 0, out / count.clamp(min=1), images)
'''),
]
RIGHT = [
("patchify", "unfold twice", '''
def patchify(images, patch):
    windows = images.unfold(2, patch, patch).unfold(3, patch, patch)
    return windows.movedim(1, 3).flatten(3).flatten(1, 2)
'''),
("convolution_weight", "a loop over every entry", '''
def convolution_weight(matrix, channels, size):
    weight = torch.empty(matrix.shape[1], channels, size, size, dtype=matrix.dtype)
    for i in range(size):
        for j in range(size):
            for c in range(channels):
                weight[:, c, i, j] = matrix[(i * size + j) * channels + c]
    return weight
'''),
("merged_tokens", "slices and cat", '''
def merged_tokens(tokens, rows, columns):
    g = tokens.view(len(tokens), rows, columns, -1)
    four = [g[:, a::2, b::2] for a in (0, 1) for b in (0, 1)]
    return torch.cat(four, dim=3).flatten(1, 2)
'''),
("denoised", "eigenvectors of the covariance, one image after another", '''
def denoised(images, size, stride, keep):
    def one(image):
        x = F.unfold(image[None], size, stride=stride)[0].T.double()
        mean = x.mean(0)
        values, vectors = torch.linalg.eigh((x - mean).T @ (x - mean))
        v = vectors.flip(1)[:, :keep]
        y = (x - mean) @ v @ v.T + mean
        fold = lambda t: F.fold(t.T[None], image.shape[1:], size, stride=stride)[0]
        total, count = fold(y), fold(torch.ones_like(y))
        out = image.double().clone()
        out[count > 0] = total[count > 0] / count[count > 0]
        return out.to(image.dtype)
    return torch.stack([one(image) for image in images])
'''),
]
