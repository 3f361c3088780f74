"""Pieces of scripts for images, sequences, graphs, recommendations and decisions."""

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from features import feature, gradients, numbers, random
from torch import nn

THEME = "Images, sequences, graphs"


def results(model, *inputs):
    """The output of a model and its gradients."""
    y = model(*inputs)
    y.square().mean().backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "Convolutional network for digits")
def convolutions(device):
    layers = [nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100, 10)]
    model = nn.Sequential(*layers).to(device)
    loss = F.nll_loss(
        model(random(3, 1, 12, 12).to(device)).log_softmax(1), torch.tensor([1, 5, 7]).to(device)
    )
    loss.backward()
    return [loss.detach(), *gradients(model)]


class Residual(nn.Module):
    """Two convolutions with batch normalisation beside a shortcut."""

    def __init__(self):
        super().__init__()
        self.conv_1, self.conv_2 = (nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(2))
        self.bn_1, self.bn_2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x):
        y = F.relu(self.bn_1(self.conv_1(x)), inplace=True)
        return F.adaptive_avg_pool2d(F.relu(self.bn_2(self.conv_2(y)) + x), 1).flatten(1)


@feature(THEME, "Residual network: batch normalisation, pooling")
def residual(device):
    model = Residual().to(device)
    found = results(model, random(2, 4, 8, 8).to(device))
    return [*found, model.bn_1.running_mean, model.eval()(random(2, 4, 8, 8).to(device)).detach()]


@feature(THEME, "Vision transformer: patches by a convolution, class token")
def vision_transformer(device):
    patches = nn.Conv2d(3, 16, 4, 4).to(device)
    token = nn.Parameter(torch.zeros(1, 1, 16, device=device))
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)
    layer = layer.to(device)
    x = patches(random(2, 3, 12, 12).to(device)).flatten(2).transpose(1, 2)
    y = layer(torch.cat([token.expand(2, -1, -1), x], dim=1))[:, 0]
    y.square().sum().backward()
    return [y.detach(), token.grad, *gradients(patches), *gradients(layer)]


class Unet(nn.Module):
    """One level down and up, with group normalisation and the time of a diffusion step."""

    def __init__(self):
        super().__init__()
        self.inside, self.outside = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(16, 1, 3, padding=1)
        self.down, self.up = nn.Conv2d(8, 8, 3, 2, 1), nn.ConvTranspose2d(8, 8, 2, 2)
        self.norm, self.time = nn.GroupNorm(2, 8), nn.Linear(8, 8)

    def forward(self, x, step):
        angles = step[:, None].float() * torch.exp(-torch.arange(4, device=x.device))
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        wide = F.silu(self.norm(self.inside(x))) + time[:, :, None, None]
        return self.outside(torch.cat([wide, self.up(F.silu(self.down(wide)))], dim=1))


@feature(THEME, "U-Net: strided and transposed convolutions, group normalisation")
def unet(device):
    return results(
        Unet().to(device), random(2, 1, 8, 8).to(device), torch.tensor([3, 7]).to(device)
    )


@feature(THEME, "Diffusion: noise by a schedule, a step of training, a step of sampling")
def diffusion(device):
    model = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8)).to(device)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 50, device=device), dim=0)
    x, noise = random(2, 4, 8).to(device)
    step = numbers(50, 4).to(device)
    share = kept[step][:, None]
    mixed = share.sqrt() * x + (1 - share).sqrt() * noise
    loss = F.mse_loss(model(torch.cat([mixed, step[:, None] / 50], dim=1)), noise)
    loss.backward()
    with torch.no_grad():
        found = model(torch.cat([mixed, step[:, None] / 50], dim=1))
        clean = (mixed - (1 - share).sqrt() * found) / share.sqrt()
    return [loss.detach(), clean.clamp(-1, 1), *gradients(model)]


@feature(THEME, "Upsampling and sampling of images (interpolate, grid_sample)")
def sampling(device):
    x = random(1, 2, 6, 6).to(device).requires_grad_()
    grid = F.affine_grid(torch.eye(2, 3)[None].to(device) * 0.8, [1, 2, 6, 6], align_corners=False)
    large = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    y = F.grid_sample(x, grid, align_corners=False)
    (large.square().sum() + y.square().sum()).backward()
    return [large.detach(), y.detach(), x.grad]


@feature(THEME, "Variational autoencoder")
def autoencoder(device):
    inside, outside = nn.Linear(12, 8).to(device), nn.Linear(4, 12).to(device)
    x = random(5, 12).to(device).sigmoid()
    mean, logarithm = inside(x).chunk(2, dim=1)
    torch.manual_seed(1)
    code = mean + torch.randn_like(mean) * (0.5 * logarithm).exp()
    loss = F.binary_cross_entropy_with_logits(outside(code), x, reduction="sum")
    loss = loss - 0.5 * torch.sum(1 + logarithm - mean.pow(2) - logarithm.exp())
    loss.backward()
    return [loss.detach(), *gradients(inside), *gradients(outside)]


@feature(THEME, "Generator and discriminator (GAN)")
def adversaries(device):
    generator = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 6), nn.Tanh())
    judge = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), nn.Sigmoid())
    generator, judge = generator.to(device), judge.to(device)
    made, ones = generator(random(5, 4).to(device)), torch.ones(5, 1, device=device)
    loss = F.binary_cross_entropy(judge(random(5, 6).to(device)), ones)
    (loss + F.binary_cross_entropy(judge(made.detach()), 0 * ones)).backward()
    F.binary_cross_entropy(judge(made), ones).backward()
    return [loss.detach(), *gradients(generator), *gradients(judge)]


@feature(THEME, "Contrastive loss of pairs (CLIP)")
def contrastive(device):
    a, b = nn.Linear(8, 6).to(device), nn.Linear(10, 6).to(device)
    scale = nn.Parameter(torch.tensor(2.6, device=device))
    x = F.normalize(a(random(5, 8).to(device)), dim=-1)
    y = F.normalize(b(random(5, 10).to(device)), dim=-1)
    logits, labels = scale.exp() * x @ y.t(), torch.arange(5, device=device)
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
    loss.backward()
    return [loss.detach(), scale.grad, *gradients(a)]


@feature(THEME, "LSTM")
def lstm(device):
    model = nn.LSTM(6, 8, batch_first=True).to(device)
    y, (hidden, cell) = model(random(2, 5, 6).to(device))
    (y.square().sum() + cell.sum()).backward()
    return [y.detach(), hidden.detach(), *gradients(model)]


@feature(THEME, "GRU over sequences of different lengths")
def gru(device):
    model = nn.GRU(6, 8, batch_first=True).to(device)
    x = random(2, 5, 6).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True)
    y, _ = nn.utils.rnn.pad_packed_sequence(model(packed)[0], batch_first=True)
    y.square().sum().backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "Convolution over time, and the CTC loss")
def speech(device):
    model = nn.Conv1d(6, 5, 3, padding=1).to(device)
    logits = model(random(2, 6, 12).to(device)).permute(2, 0, 1).log_softmax(2)
    targets, lengths = numbers(4, 2, 3).add(1).to(device), torch.tensor([12, 12])
    loss = F.ctc_loss(logits, targets, lengths, torch.tensor([3, 2]))
    loss.backward()
    return [loss.detach(), *gradients(model)]


@feature(THEME, "Spectral layer (torch.fft)")
def spectral(device):
    weight = nn.Parameter(torch.view_as_complex(random(9, 2)).to(device))
    x = random(3, 16).to(device).requires_grad_()
    y = torch.fft.irfft(torch.fft.rfft(x) * weight, n=16)
    y.square().sum().backward()
    return [y.detach(), x.grad, torch.view_as_real(weight.grad)]


@feature(THEME, "Embedding bags and crossed features (DLRM)")
def recommendation(device):
    bags = nn.EmbeddingBag(20, 8, mode="sum").to(device)
    dense = nn.Linear(4, 8).to(device)
    found = bags(numbers(20, 7).to(device), torch.tensor([0, 2, 5]).to(device))
    parts = torch.stack([dense(random(3, 4).to(device)), found], dim=1)
    crossed = torch.bmm(parts, parts.transpose(1, 2))
    rows, columns = torch.tril_indices(2, 2, -1, device=device)
    y = torch.cat([parts[:, 0], crossed[:, rows, columns]], dim=1)
    y.square().sum().backward()
    return [y.detach(), *gradients(bags), *gradients(dense)]


@feature(THEME, "Graph network: messages along edges by index_add and scatter")
def graph(device):
    layer, (start, end) = nn.Linear(6, 6).to(device), numbers(8, 2, 20).to(device)
    x = random(8, 6).to(device)
    degree = torch.zeros(8, device=device).scatter_add_(0, end, torch.ones(20, device=device))
    messages = layer(x)[start]
    y = torch.zeros(8, 6, device=device).index_add_(0, end, messages) / degree.clamp(min=1)[:, None]
    top = torch.zeros(8, 6, device=device).scatter_reduce(
        0, end[:, None].expand(-1, 6), messages, "amax", include_self=False
    )
    (y.square().sum() + top.sum()).backward()
    return [y.detach(), top.detach(), *gradients(layer)]


@feature(THEME, "Policy gradients: sampled actions, returns, clipped ratios (REINFORCE, PPO)")
def policy(device):
    actor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
    choices = torch.distributions.Categorical(logits=actor(random(6, 4).to(device)))
    torch.manual_seed(2)
    actions, rewards = choices.sample(), random(6).to(device)
    returns = rewards.flip(0).cumsum(0).flip(0)
    gain = (returns - returns.mean()) / (returns.std() + 1e-6)
    ratio = (choices.log_prob(actions) - choices.log_prob(actions).detach()).exp()
    loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
    (loss - 0.01 * choices.entropy().mean()).backward()
    # The ratios are 1 and the gains have the mean 0, and so has the loss.
    return [actions, loss.detach() + 1, *gradients(actor)]


@feature(THEME, "Q-learning: replay, target network, Huber loss")
def q_learning(device):
    online, target = (nn.Linear(4, 3).to(device) for _ in range(2))
    state, following = random(2, 6, 4).to(device)
    action, ended = numbers(3, 6, 1).to(device), (numbers(2, 6) > 0).to(device)
    with torch.no_grad():
        best = target(following).max(dim=1).values
        wanted = random(6).to(device) + 0.9 * best * ~ended
    loss = F.smooth_l1_loss(online(state).gather(1, action).squeeze(1), wanted)
    loss.backward()
    with torch.no_grad():
        for old, new in zip(target.parameters(), online.parameters(), strict=True):
            old.lerp_(new, 0.1)
    return [loss.detach(), *gradients(online), target.weight.detach()]


@feature(THEME, "Linear algebra: solve, Cholesky, SVD, least squares")
def algebra(device):
    x = random(6, 6).to(device)
    square = x @ x.t() + torch.eye(6, device=device)
    factor = torch.linalg.cholesky(square)
    solution = torch.linalg.solve(square, random(6, 2, seed=2).to(device))
    fitted = torch.linalg.lstsq(square, random(6, 2, seed=3).to(device)).solution
    return [factor, solution, fitted, torch.linalg.svdvals(x)]


@feature(THEME, "Metrics: accuracy, top-5, confusion, histogram, quantiles, unique classes")
def metrics(device):
    logits, labels = random(30, 8).to(device), numbers(8, 30).to(device)
    guess = logits.argmax(dim=1)
    found = logits.topk(5, dim=1).indices
    confusion = torch.bincount(labels * 8 + guess, minlength=64).view(8, 8)
    classes, counts = torch.unique(labels, return_counts=True)
    return [
        (guess == labels).float().mean(),
        (found == labels[:, None]).any(dim=1).float().mean(),
        confusion,
        classes,
        counts,
        torch.histc(logits, 10),
        torch.quantile(logits, 0.9),
        logits.std(dim=0),
    ]
