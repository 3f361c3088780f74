"""Pieces of scripts that train language models, and that generate text with them."""

import math

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from features import feature, gradients, numbers, parameters, random
from torch import nn
from torch.nn.attention import flex_attention

THEME = "Language models"


class Decoder(nn.Module):
    """A block of a decoder with dropout, and a cache for decoding."""

    def __init__(self, width: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = width // 16, nn.Dropout(dropout)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x, cache=None):
        batch, tokens, width = x.shape
        q, k, v = (
            each.view(batch, tokens, self.heads, -1).transpose(1, 2)
            for each in self.c_attn(self.ln_1(x)).split(width, dim=2)
        )
        if cache is not None:
            k, v = cache["k"], cache["v"] = (
                torch.cat([cache["k"], k], dim=2) if "k" in cache else k,
                torch.cat([cache["v"], v], dim=2) if "v" in cache else v,
            )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        x = x + self.dropout(self.c_proj(y.transpose(1, 2).reshape(batch, tokens, width)))
        return x + self.mlp(self.ln_2(x))


class LanguageModel(nn.Module):
    """Tokens to logits, with one matrix for the embedding and the head."""

    def __init__(self, vocabulary: int = 48, width: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(24, width)
        self.block, self.ln_f = Decoder(width, dropout), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        for each in (self.wte, self.wpe):
            nn.init.normal_(each.weight, std=0.2)

    def forward(self, tokens, cache=None, start=0):
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        return self.head(self.ln_f(self.block(x, cache)))


@feature(THEME, "nanoGPT-like training: weight tying, groups with and without decay, clipping")
def gpt(device):
    model = LanguageModel().to(device)
    groups = [
        {"params": [each for each in model.parameters() if each.dim() >= 2], "weight_decay": 0.1},
        {"params": [each for each in model.parameters() if each.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    losses = []
    for step in range(2):
        text = numbers(48, 2, 17, seed=step).to(device)
        logits = model(text[:, :-1])
        loss = F.cross_entropy(logits.view(-1, 48), text[:, 1:].reshape(-1), ignore_index=-1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return losses


@feature(THEME, "Encoder with padding mask (nn.TransformerEncoder)")
def encoder(device):
    layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    padding = torch.zeros(2, 12, dtype=torch.bool)
    padding[1, 8:] = True
    y = model(random(2, 12, 32).to(device), src_key_padding_mask=padding.to(device))
    # The squares of what is normalised have no gradient.
    (y * random(*y.shape, seed=3).to(device)).sum().backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "Encoder and decoder (nn.Transformer)")
def translation(device):
    model = nn.Transformer(32, 2, 1, 1, 64, dropout=0.0, batch_first=True).to(device)
    mask = nn.Transformer.generate_square_subsequent_mask(9, device=device)
    y = model(random(2, 11, 32).to(device), random(2, 9, 32, seed=2).to(device), tgt_mask=mask)
    (y * random(*y.shape, seed=3).to(device)).sum().backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "Rotary positions by complex numbers")
def complex_rotary(device):
    x = random(2, 10, 2, 16).to(device).requires_grad_()
    frequencies = 1.0 / 10000.0 ** (torch.arange(0, 16, 2, device=device).float() / 16)
    angles = torch.outer(torch.arange(10, device=device).float(), frequencies)
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(2, 10, 2, 8, 2))
    y = torch.view_as_real(pairs * turns[:, None]).flatten(3)
    y.square().sum().backward()
    return [y.detach(), x.grad]


@feature(THEME, "RMSNorm, SwiGLU, rotary by halves, grouped queries")
def llama_layer(device):
    norm, gate, up = nn.RMSNorm(32).to(device), nn.Linear(32, 64), nn.Linear(32, 64)
    gate, up = gate.to(device), up.to(device)
    x = norm(random(2, 10, 32).to(device))
    angles = torch.outer(torch.arange(10.0, device=device), torch.arange(1.0, 5.0, device=device))
    cos, sin = (torch.cat([each, each], dim=-1) for each in (angles.cos(), angles.sin()))
    q = x.view(2, 10, 4, 8).transpose(1, 2)
    q = q * cos + torch.cat([-q[..., 4:], q[..., :4]], dim=-1) * sin
    k = q[:, ::2]
    y = F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
    z = F.silu(gate(y.transpose(1, 2).flatten(2))) * up(x)
    z.square().mean().backward()
    return [z.detach(), norm.weight.grad, *gradients(gate)]


@feature(THEME, "Attention with a bias of distances (ALiBi, T5)")
def biased_attention(device):
    table = nn.Embedding(16, 2).to(device)
    distance = torch.arange(12, device=device)[:, None] - torch.arange(12, device=device)
    buckets = distance.abs().clamp(max=15)
    bias = table(buckets).permute(2, 0, 1).masked_fill(distance < 0, float("-inf"))
    q, k, v = random(3, 2, 2, 12, 16).to(device)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    y.square().sum().backward()
    return [y.detach(), *gradients(table)]


@feature(THEME, "flex_attention: a mask by blocks, and scores that a function changes")
def flexible_attention(device):
    q, k, v = random(3, 2, 2, 16, 8).to(device)
    mask = flex_attention.create_block_mask(
        lambda batch, head, row, column: row >= column, None, None, 16, 16, device, BLOCK_SIZE=8
    )

    def nearer(score, batch, head, row, column):
        return score - (row - column) * 0.1

    return [flex_attention.flex_attention(q, k, v, score_mod=nearer, block_mask=mask)]


@feature(THEME, "Greedy decoding with a cache of keys and values")
def cached_decoding(device):
    model, cache = LanguageModel().to(device).eval(), {}
    with torch.no_grad():
        text = numbers(48, 1, 5).to(device)
        logits = model(text, cache)
        for place in range(5, 9):
            chosen = logits[:, -1].argmax(dim=-1, keepdim=True)
            text = torch.cat([text, chosen], dim=1)
            logits = model(chosen, cache, start=place)
    return [text, logits]


@feature(THEME, "Sampling: temperature, top-k, multinomial")
def top_k_sampling(device):
    logits = random(4, 48).to(device) / 0.8
    least = torch.topk(logits, 10).values[:, [-1]]
    logits[logits < least] = -float("inf")
    torch.manual_seed(3)
    drawn = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
    return [drawn, logits.gather(1, drawn)]


@feature(THEME, "Sampling: top-p (nucleus)")
def nucleus_sampling(device):
    probabilities = random(4, 48).to(device).softmax(dim=-1)
    ordered, places = torch.sort(probabilities, dim=-1, descending=True)
    ordered[ordered.cumsum(dim=-1) - ordered > 0.9] = 0.0
    ordered.div_(ordered.sum(dim=-1, keepdim=True))
    # The draw of the trick by exponentials, which needs no synchronisation.
    torch.manual_seed(4)
    drawn = (ordered / torch.empty_like(ordered).exponential_(1)).argmax(dim=-1, keepdim=True)
    return [torch.gather(places, -1, drawn)]


@feature(THEME, "Beam search")
def beams(device):
    model, width = LanguageModel().to(device), 3
    text = numbers(48, 1, 4).to(device).repeat(width, 1)
    scores = torch.tensor([0.0, -1e9, -1e9], device=device)
    with torch.no_grad():
        for _ in range(3):
            found = scores[:, None] + model(text)[:, -1].log_softmax(dim=-1)
            scores, flat = found.view(-1).topk(width)
            rows = torch.div(flat, 48, rounding_mode="floor")
            text = torch.cat([text[rows], (flat % 48)[:, None]], dim=1)
    return [text, scores]


@feature(THEME, "Speculative decoding: draft, verification, acceptance")
def speculative_decoding(device):
    draft, target = LanguageModel(width=16).to(device), LanguageModel().to(device)
    with torch.no_grad():
        text = numbers(48, 1, 4).to(device)
        proposed = text
        for _ in range(3):
            following = draft(proposed)[:, -1:].argmax(dim=-1)
            proposed = torch.cat([proposed, following], dim=1)
        p = target(proposed)[:, 3:-1].softmax(dim=-1)
        q = draft(proposed)[:, 3:-1].softmax(dim=-1)
        drawn = proposed[:, 4:, None]
        ratio = (p.gather(2, drawn) / q.gather(2, drawn)).squeeze(2).clamp(max=1.0)
        torch.manual_seed(5)
        accepted = (torch.rand_like(ratio) < ratio).cumprod(dim=1).sum(dim=1)
        rest = (p - q).clamp(min=0)
        rest = rest / rest.sum(dim=-1, keepdim=True)
    return [accepted, ratio, rest]


@feature(THEME, "Fine-tuning of low rank (LoRA)")
def low_rank(device):
    base = nn.Linear(32, 32).to(device).requires_grad_(requires_grad=False)
    torch.manual_seed(2)
    a = nn.Parameter(torch.empty(4, 32, device=device))
    b = nn.Parameter(torch.zeros(32, 4, device=device))
    nn.init.kaiming_uniform_(a, a=math.sqrt(5))
    optimizer = torch.optim.AdamW([a, b], lr=1e-2)
    x = random(8, 32).to(device)
    for _ in range(2):
        y = base(x) + (x @ a.t() @ b.t()) * 2.0
        loss = y.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return [base.weight + 2.0 * (b @ a).detach(), loss.detach()]


@feature(THEME, "Linear layer with int8 weights and scales")
def quantised(device):
    weight, x = random(24, 32).to(device), random(5, 32, seed=2).to(device)
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    stored = torch.round(weight / scales).clamp(-128, 127).to(torch.int8)
    return [stored, F.linear(x, stored.to(x.dtype)) * scales.t()]


@feature(THEME, "Products of int8 matrices (torch._int_mm)")
def integer_products(device):
    a, b = (random(32, 32, seed=seed).mul(20).to(torch.int8).to(device) for seed in (1, 2))
    return [torch._int_mm(a, b)]


@feature(THEME, "Preference loss of two models (DPO)")
def preferences(device):
    policy, reference = LanguageModel().to(device), LanguageModel().to(device).eval()

    def likelihood(model, text):
        found = model(text[:, :-1]).log_softmax(dim=-1)
        return torch.gather(found, 2, text[:, 1:, None]).squeeze(2).sum(dim=-1)

    chosen, rejected = numbers(48, 2, 3, 9).to(device)
    with torch.no_grad():
        base = likelihood(reference, chosen) - likelihood(reference, rejected)
    ratio = likelihood(policy, chosen) - likelihood(policy, rejected)
    loss = -F.logsigmoid(0.1 * (ratio - base)).mean()
    loss.backward()
    return [loss.detach(), *gradients(policy)]


@feature(THEME, "Distillation with label smoothing")
def distillation(device):
    model = nn.Linear(16, 10).to(device)
    x, teacher = random(6, 16).to(device), random(6, 10, seed=2).to(device)
    logits = model(x)
    hard = F.cross_entropy(logits, numbers(10, 6).to(device), label_smoothing=0.1)
    soft = F.kl_div(
        F.log_softmax(logits / 2, dim=-1), F.softmax(teacher / 2, dim=-1), reduction="batchmean"
    )
    (hard + 4 * soft).backward()
    return [hard.detach(), soft.detach(), *gradients(model)]


@feature(THEME, "Linear attention and a scan over the sequence")
def linear_attention(device):
    q, k, v = (each.requires_grad_() for each in random(3, 2, 12, 8).to(device))
    state = torch.einsum("btk,btv->btkv", F.elu(k) + 1, v).cumsum(dim=1)
    total = (F.elu(k) + 1).cumsum(dim=1)
    top = torch.einsum("btk,btkv->btv", F.elu(q) + 1, state)
    y = top / torch.einsum("btk,btk->bt", F.elu(q) + 1, total)[..., None]
    y.square().sum().backward()
    return [y.detach(), q.grad, k.grad, v.grad]


@feature(THEME, "Mixture of experts on one device, with a loss that balances")
def experts(device):
    router = nn.Linear(16, 4).to(device)
    layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4)).to(device)
    x = random(20, 16).to(device)
    probabilities = router(x).softmax(dim=-1)
    weights, chosen = probabilities.topk(2, dim=-1)
    y = torch.zeros_like(x)
    for number, layer in enumerate(layers):
        rows, place = torch.where(chosen == number)
        y = y.index_add(0, rows, layer(x[rows]) * weights[rows, place, None])
    share = F.one_hot(chosen, 4).float().mean(dim=(0, 1))
    (y.square().mean() + (share * probabilities.mean(dim=0)).sum()).backward()
    return [y.detach(), *gradients(router), *gradients(layers)]


@feature(THEME, "Dropout, with equal random numbers")
def dropout(device):
    model = LanguageModel(dropout=0.2).to(device)
    torch.manual_seed(6)
    loss = model(numbers(48, 2, 12).to(device)).square().mean()
    loss.backward()
    return [loss.detach(), *parameters(model)[:1], *gradients(model)]
