"""Small models of Hugging Face with random weights, each a training step and four tokens of greedy
generation, on the device and on a CPU. The arguments name models; without any, all run.

Lines `= model | loss | gradients | tokens | host | draws | seconds`: the differences of the losses
and, in parts of their norm, of all gradients; whether the tokens are the same; the shares of
simulated time in operators and in random draws on the host, in percent; the processor time of the
step.
"""

import sys
from collections.abc import Mapping
from time import process_time
from typing import Any

import torch
import transformers
from torch import nn

from kernbench.torch_backend.aten.operators import HostTime

VOCABULARY = 64
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = SMALL | {"num_key_value_heads": 2}
TINY = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
IMAGES = {"num_labels": 2}

MODELS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "Mistral": ("MistralForCausalLM", "MistralConfig", GROUPED),
    "Mixtral": ("MixtralForCausalLM", "MixtralConfig", GROUPED | {"num_local_experts": 4}),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED | {"head_dim": 8}),
    "Qwen2-MoE": (
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        GROUPED
        | {"num_experts": 4, "num_experts_per_tok": 2}
        | {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 32},
    ),
    "DeepSeek-V3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        SMALL
        | {"num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2}
        | {"moe_intermediate_size": 32, "q_lora_rank": 16, "kv_lora_rank": 16}
        | {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
        | {"n_group": 2, "topk_group": 1, "first_k_dense_replace": 1},
    ),
    "Gemma": ("GemmaForCausalLM", "GemmaConfig", GROUPED | {"head_dim": 8}),
    "Gemma 2": ("Gemma2ForCausalLM", "Gemma2Config", GROUPED | {"head_dim": 8}),
    "Phi-3": ("Phi3ForCausalLM", "Phi3Config", GROUPED),
    "GPT-NeoX": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL),
    "OPT": ("OPTForCausalLM", "OPTConfig", SMALL | {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    "Falcon": ("FalconForCausalLM", "FalconConfig", SMALL),
    "OLMo": ("OlmoForCausalLM", "OlmoConfig", GROUPED),
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", TINY | {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "BLOOM": ("BloomForCausalLM", "BloomConfig", TINY | {"hidden_size": 32, "n_layer": 2}),
    "T5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2}
        | {"num_heads": 4, "decoder_start_token_id": 0},
    ),
    "Mamba": ("MambaForCausalLM", "MambaConfig", SMALL | {"state_size": 4}),
    "BERT": ("BertForMaskedLM", "BertConfig", SMALL),
    "RoBERTa": ("RobertaForMaskedLM", "RobertaConfig", SMALL),
    "Whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        TINY
        | {"num_mel_bins": 8, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
        | {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
        | {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 1}
        | {"max_source_positions": 16, "max_target_positions": 16},
    ),
    "ViT": (
        "ViTForImageClassification",
        "ViTConfig",
        SMALL | IMAGES | {"image_size": 16, "patch_size": 8},
    ),
    "Swin": (
        "SwinForImageClassification",
        "SwinConfig",
        IMAGES
        | {"image_size": 32, "patch_size": 4, "embed_dim": 16, "window_size": 4}
        | {"depths": [1, 1], "num_heads": [2, 2]},
    ),
    "ConvNeXt": (
        "ConvNextForImageClassification",
        "ConvNextConfig",
        IMAGES
        | {"image_size": 16, "patch_size": 2, "num_stages": 2}
        | {"hidden_sizes": [8, 16], "depths": [1, 1]},
    ),
}
WITHOUT_GENERATION = ("BERT", "RoBERTa")


def inputs_of(model: Any) -> dict[str, torch.Tensor]:
    """A batch of two texts, sounds or images, with what the model is to answer."""
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, VOCABULARY, (2, 12), generator=draw)
    if model.main_input_name == "pixel_values":
        size = model.config.image_size
        images = torch.randn(2, 3, size, size, generator=draw)
        return {"pixel_values": images, "labels": torch.tensor([0, 1])}
    if model.main_input_name == "input_features":
        return {"input_features": torch.randn(2, 8, 32, generator=draw), "labels": tokens}
    return {"input_ids": tokens, "labels": tokens}


def step(model: nn.Module, inputs: Mapping[str, torch.Tensor]) -> tuple[float, torch.Tensor]:
    """The loss and all gradients in a row."""
    model.zero_grad()
    loss = model(**inputs).loss
    loss.backward()
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    return loss.item(), torch.cat([each.reshape(-1).cpu().double() for each in grads])


def generated(model: Any, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Four tokens behind the first ones of a text, or of a sound."""
    name = model.main_input_name
    given = inputs[name] if name == "input_features" else inputs[name][:1, :5]
    return model.generate(given, max_new_tokens=4, do_sample=False).cpu()


def compare(name: str) -> str:
    kind, config, sizes = MODELS[name]
    torch.manual_seed(0)
    model: Any = getattr(transformers, kind)(getattr(transformers, config)(**sizes)).eval()
    inputs = inputs_of(model)
    loss, grads = step(model, inputs)
    can_generate = "pixel_values" not in inputs and name not in WITHOUT_GENERATION
    tokens = generated(model, inputs) if can_generate else None
    model = model.to("ahbm")
    moved = {key: each.to("ahbm") for key, each in inputs.items()}
    begin_ns, host, draws = torch.ahbm.now_ns(), HostTime.elapsed_ps, HostTime.drawn_ps
    begin_s = process_time()
    own_loss, own_grads = step(model, moved)
    seconds = process_time() - begin_s
    percent_ps = (torch.ahbm.now_ns() - begin_ns) * 10
    shares = [(HostTime.elapsed_ps - host) / percent_ps, (HostTime.drawn_ps - draws) / percent_ps]
    is_same = tokens is None or torch.equal(generated(model, moved), tokens)
    difference = ((own_grads - grads).norm() / grads.norm()).item()
    numbers = f"{abs(own_loss - loss):.1e} | {difference:.1e}"
    outcome = "-" if tokens is None else "same" if is_same else "other"
    return f"= {name} | {numbers} | {outcome} | {shares[0]:.1f} | {shares[1]:.1f} | {seconds:.1f}"


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        print(compare(each), flush=True)
