LB = '''
def lbfgs_direction(gradient, steps, changes):
    q = gradient.clone()
    rho = 1 / (steps * changes).sum(1)
    alpha = [None] * len(steps)
    for i in reversed(range(len(steps))):
        alpha[i] = rho[i] * steps[i] @ q
        q = q - alpha[i] * changes[i]
    q = q * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for i in range(len(steps)):
        beta = rho[i] * changes[i] @ q
        q = q + (alpha[i] - beta) * steps[i]
    return -q
'''
WRONG = [
("distance_step", "gradient of the squared distance", '''
def distance_step(x, target, function, eps):
    x = x.detach().requires_grad_()
    d = (function(x) - target).square().sum()
    return (x - eps * torch.autograd.grad(d, x)[0]).detach()
'''),
("distance_step", "steps uphill", '''
def distance_step(x, target, function, eps):
    x = x.detach().requires_grad_()
    d = (function(x) - target).norm(dim=1).sum()
    return (x + eps * torch.autograd.grad(d, x)[0]).detach()
'''),
("distance_step", "one distance for the whole batch", '''
def distance_step(x, target, function, eps):
    x = x.detach().requires_grad_()
    d = (function(x) - target).norm()
    return (x - eps * torch.autograd.grad(d, x)[0]).detach()
'''),
("distance_step", "mean of the distances: gradient divided by the batch", '''
def distance_step(x, target, function, eps):
    x = x.detach().requires_grad_()
    d = (function(x) - target).norm(dim=-1).mean()
    return (x - eps * torch.autograd.grad(d, x)[0]).detach()
'''),
("distance_step", "gradient normalised to length 1", '''
def distance_step(x, target, function, eps):
    x = x.detach().requires_grad_()
    d = (function(x) - target).norm(dim=-1).sum()
    g = torch.autograd.grad(d, x)[0]
    return (x - eps * g / g.norm(dim=-1, keepdim=True)).detach()
'''),
("distance_step", "sum of absolute differences instead of the Euclidean distance", '''
def distance_step(x, target, function, eps):
    x = x.detach().requires_grad_()
    d = (function(x) - target).abs().sum()
    return (x - eps * torch.autograd.grad(d, x)[0]).detach()
'''),
("allowed_error", "largest singular value", '''
def allowed_error(jacobians, distances):
    return distances / torch.linalg.svdvals(jacobians)[:, 0]
'''),
("allowed_error", "multiplies instead of dividing", '''
def allowed_error(jacobians, distances):
    return distances * torch.linalg.svdvals(jacobians)[:, -1]
'''),
("allowed_error", "squared singular value", '''
def allowed_error(jacobians, distances):
    return distances / torch.linalg.svdvals(jacobians)[:, -1] ** 2
'''),
("allowed_error", "smallest of the whole batch", '''
def allowed_error(jacobians, distances):
    return distances / torch.linalg.svdvals(jacobians).min()
'''),
("left_after", "singular values not squared", '''
def left_after(error, jacobian, steps):
    _, s, v = torch.linalg.svd(jacobian, full_matrices=False)
    return v.T @ ((1 - s / s[0]) ** steps * (v @ error))
'''),
("left_after", "columns of Vh taken for the singular vectors", '''
def left_after(error, jacobian, steps):
    _, s, v = torch.linalg.svd(jacobian, full_matrices=False)
    return v @ ((1 - s ** 2 / s[0] ** 2) ** steps * (v.T @ error))
'''),
("left_after", "rate not divided by the largest singular value squared", '''
def left_after(error, jacobian, steps):
    _, s, v = torch.linalg.svd(jacobian, full_matrices=False)
    return v.T @ ((1 - s ** 2) ** steps * (v @ error))
'''),
("left_after", "stays in the basis of singular vectors", '''
def left_after(error, jacobian, steps):
    _, s, v = torch.linalg.svd(jacobian, full_matrices=False)
    return (1 - s ** 2 / s[0] ** 2) ** steps * (v @ error)
'''),
("left_after", "factor multiplied by steps instead of raised to the power", '''
def left_after(error, jacobian, steps):
    _, s, v = torch.linalg.svd(jacobian, full_matrices=False)
    return v.T @ ((1 - steps * s ** 2 / s[0] ** 2) * (v @ error))
'''),
("gauss_newton_step", "transpose instead of the least-squares solution: gradient descent", '''
def gauss_newton_step(x, target, function):
    J = torch.func.jacrev(function)(x)
    return x - J.T @ (function(x) - target)
'''),
("gauss_newton_step", "wrong sign of the step", '''
def gauss_newton_step(x, target, function):
    J = torch.func.jacrev(function)(x)
    r = function(x) - target
    return x + torch.linalg.lstsq(J, r[:, None]).solution[:, 0]
'''),
("gauss_newton_step", "returns the step instead of the new input", '''
def gauss_newton_step(x, target, function):
    J = torch.func.jacrev(function)(x)
    return torch.linalg.lstsq(J, (target - function(x))[:, None]).solution[:, 0]
'''),
("gauss_newton_step", "solves J s = target, without the function's value", '''
def gauss_newton_step(x, target, function):
    J = torch.func.jacrev(function)(x)
    return x + torch.linalg.lstsq(J, target[:, None]).solution[:, 0]
'''),
("lbfgs_direction", "first loop from the oldest to the newest", LB.replace("in reversed(range(len(steps)))", "in range(len(steps))")),
("lbfgs_direction", "gamma of the oldest pair", LB.replace("steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])", "steps[0] @ changes[0]) / (changes[0] @ changes[0])")),
("lbfgs_direction", "sign: the direction goes uphill", LB.replace("return -q", "return q")),
("lbfgs_direction", "gamma = s.s / s.y", LB.replace("(steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])", "(steps[-1] @ steps[-1]) / (steps[-1] @ changes[-1])")),
("lbfgs_direction", "no gamma", LB.replace("    q = q * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])\n", "")),
("lbfgs_direction", "second loop from the newest to the oldest", LB.replace("    for i in range(len(steps)):\n        beta", "    for i in reversed(range(len(steps))):\n        beta")),
]
RIGHT = [
("distance_step", "backward on a leaf, cdist", '''
def distance_step(x, target, function, eps):
    leaf = x.clone().detach().requires_grad_(True)
    torch.stack([torch.dist(a, b) for a, b in zip(function(leaf), target)]).sum().backward()
    return x - eps * leaf.grad
'''),
("left_after", "eigendecomposition of J^T J", '''
def left_after(error, jacobian, steps):
    w, V = torch.linalg.eigh(jacobian.T @ jacobian)
    return (V * (1 - w / w[-1]).clamp(min=0) ** steps) @ (V.T @ error)
'''),
("gauss_newton_step", "normal equations, jacfwd", '''
def gauss_newton_step(x, target, function):
    J = torch.func.jacfwd(function)(x)
    return x + torch.linalg.solve(J.T @ J, J.T @ (target - function(x)))
'''),
("lbfgs_direction", "the matrix H by the BFGS recursion", '''
def lbfgs_direction(gradient, steps, changes):
    eye = torch.eye(len(gradient), dtype=gradient.dtype)
    s, y = steps[-1], changes[-1]
    H = eye * torch.dot(s, y) / torch.dot(y, y)
    for s, y in zip(steps, changes):
        A = eye - torch.outer(s, y) / torch.dot(s, y)
        H = A @ H @ A.T + torch.outer(s, s) / torch.dot(s, y)
    return -(H @ gradient)
'''),
]
