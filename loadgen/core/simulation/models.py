"""Known models: their published configurations, and the sizes that follow.

Counts are of `config.json` and the model cards of the named repositories. Parameters include both embeddings; weights
are in bf16 unless `weight_bytes` says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_BF16 = 2
_EAGLE3_VOCABULARY = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts: how many a layer has, how many a token picks, and the size of all of them in the model."""

    count: int
    per_token: int
    parameters: float
    weight_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model. `active_parameters` take part in one token's arithmetic; all of them do in a dense model.

    `attention_layers` are those that keep the whole context, which is all but sliding-window ones;
    `kv_bytes_per_layer` is the cache of one token in one of them. `context_tokens` is the longest context that its
    configuration allows (`max_position_embeddings`).
    """

    name: str
    repository: str
    parameters: float
    active_parameters: float
    weight_bytes: float
    layers: int
    attention_layers: int
    kv_bytes_per_layer: int
    hidden: int
    feed_forward: int
    attention_heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context_tokens: int
    experts: Experts | None = None

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of cache that one token of context adds, and that each later step reads."""
        return self.attention_layers * self.kv_bytes_per_layer

    @property
    def embedding_bytes(self) -> float:
        """The output projection, which a step reads whole."""
        return self.vocabulary * self.hidden * _BF16


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A drafter of one layer on top of the target: `parameters` of its own, `read_bytes` a pass."""

    parameters: float
    weight_bytes: float
    read_bytes: float
    kv_bytes_per_token: int


def eagle_head(target: Model) -> Head:
    """EAGLE: one decoder layer behind a projection of feature and embedding; the output projection is the target's."""
    parameters = _layer(target, attention_input=target.hidden) + 2 * target.hidden**2
    return Head(
        parameters=parameters,
        weight_bytes=parameters * _BF16,
        read_bytes=parameters * _BF16 + target.embedding_bytes,
        kv_bytes_per_token=target.kv_bytes_per_layer,
    )


def eagle3_head(target: Model) -> Head:
    """EAGLE-3: a layer whose attention reads twice the width, three fused features, its own smaller vocabulary."""
    projection = min(_EAGLE3_VOCABULARY, target.vocabulary) * target.hidden
    parameters = _layer(target, attention_input=2 * target.hidden) + 3 * target.hidden**2 + projection
    return Head(
        parameters=parameters,
        weight_bytes=parameters * _BF16,
        read_bytes=parameters * _BF16,
        kv_bytes_per_token=target.kv_bytes_per_layer,
    )


def mtp_head(target: Model) -> Head:
    """Multi-token prediction: one more layer of the target behind a projection of hidden state and embedding.

    Of a mixture of experts a pass is taken to read one layer's share of the active weights: right for small batches.
    """
    layer = (target.active_parameters - 2 * target.vocabulary * target.hidden) / target.layers
    bytes_per_parameter = target.weight_bytes / target.parameters
    stored = (target.parameters - 2 * target.vocabulary * target.hidden) / target.layers + 2 * target.hidden**2
    return Head(
        parameters=stored,
        weight_bytes=stored * bytes_per_parameter,
        read_bytes=(layer + 2 * target.hidden**2) * bytes_per_parameter + target.embedding_bytes,
        kv_bytes_per_token=target.kv_bytes_per_layer,
    )


def _layer(target: Model, *, attention_input: int) -> float:
    query = target.attention_heads * target.head_size
    attention = attention_input * (query + 2 * target.kv_heads * target.head_size) + query * target.hidden
    return attention + 3 * target.hidden * target.feed_forward


def _dense(
    name: str,
    repository: str,
    *,
    parameters: float,
    layers: int,
    hidden: int,
    feed_forward: int,
    heads: int,
    kv_heads: int,
    head_size: int,
    vocabulary: int,
    context_tokens: int,
) -> Model:
    return Model(
        name=name,
        repository=repository,
        parameters=parameters,
        active_parameters=parameters,
        weight_bytes=parameters * _BF16,
        layers=layers,
        attention_layers=layers,
        kv_bytes_per_layer=2 * kv_heads * head_size * _BF16,
        hidden=hidden,
        feed_forward=feed_forward,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        vocabulary=vocabulary,
        context_tokens=context_tokens,
    )


def _gpt_oss(name: str, repository: str, *, parameters: float, active: float, layers: int, experts: int) -> Model:
    """Experts in MXFP4 (4.25 bits a weight), the rest in bf16; every second layer has a window of 128 tokens."""
    hidden, intermediate, bits = 2880, 2880, 4.25
    expert_parameters = layers * experts * 3.0 * hidden * intermediate
    expert_bytes = expert_parameters * bits / 8
    return Model(
        name=name,
        repository=repository,
        parameters=parameters,
        active_parameters=active,
        weight_bytes=(parameters - expert_parameters) * _BF16 + expert_bytes,
        layers=layers,
        attention_layers=layers // 2,
        kv_bytes_per_layer=2 * 8 * 64 * _BF16,
        hidden=hidden,
        feed_forward=intermediate,
        attention_heads=64,
        kv_heads=8,
        head_size=64,
        vocabulary=201_088,
        context_tokens=131_072,
        experts=Experts(count=experts, per_token=4, parameters=expert_parameters, weight_bytes=expert_bytes),
    )


def _qwen3_30b() -> Model:
    expert_parameters = 48 * 128 * 3.0 * 2048 * 768
    return Model(
        name="Qwen3-30B-A3B",
        repository="Qwen/Qwen3-30B-A3B",
        parameters=30.5e9,
        active_parameters=3.3e9,
        weight_bytes=30.5e9 * _BF16,
        layers=48,
        attention_layers=48,
        kv_bytes_per_layer=2 * 4 * 128 * _BF16,
        hidden=2048,
        feed_forward=6144,
        attention_heads=32,
        kv_heads=4,
        head_size=128,
        vocabulary=151_936,
        context_tokens=40_960,
        experts=Experts(count=128, per_token=8, parameters=expert_parameters, weight_bytes=expert_parameters * _BF16),
    )


def _deepseek_v3() -> Model:
    """671 billion parameters in fp8, 37 active; 58 of 61 layers have 256 experts; one latent of 512 + 64 a token."""
    expert_parameters = 58 * 256 * 3.0 * 7168 * 2048
    return Model(
        name="DeepSeek-V3",
        repository="deepseek-ai/DeepSeek-V3",
        parameters=671e9,
        active_parameters=37e9,
        weight_bytes=671e9,
        layers=61,
        attention_layers=61,
        kv_bytes_per_layer=(512 + 64) * _BF16,
        hidden=7168,
        feed_forward=18_432,
        attention_heads=128,
        kv_heads=128,
        head_size=128,
        vocabulary=129_280,
        context_tokens=163_840,
        experts=Experts(count=256, per_token=8, parameters=expert_parameters, weight_bytes=expert_parameters),
    )


MODELS: Mapping[str, Model] = {
    "llama-3.1-8b": _dense(
        "Llama-3.1-8B",
        "meta-llama/Llama-3.1-8B-Instruct",
        parameters=8_030_261_248,
        layers=32,
        hidden=4096,
        feed_forward=14_336,
        heads=32,
        kv_heads=8,
        head_size=128,
        vocabulary=128_256,
        context_tokens=131_072,
    ),
    "llama-3.1-70b": _dense(
        "Llama-3.1-70B",
        "meta-llama/Llama-3.1-70B-Instruct",
        parameters=70_553_706_496,
        layers=80,
        hidden=8192,
        feed_forward=28_672,
        heads=64,
        kv_heads=8,
        head_size=128,
        vocabulary=128_256,
        context_tokens=131_072,
    ),
    "llama-3.2-1b": _dense(
        "Llama-3.2-1B",
        "meta-llama/Llama-3.2-1B-Instruct",
        parameters=1_235_814_400,
        layers=16,
        hidden=2048,
        feed_forward=8192,
        heads=32,
        kv_heads=8,
        head_size=64,
        vocabulary=128_256,
        context_tokens=131_072,
    ),
    "qwen3-0.6b": _dense(
        "Qwen3-0.6B",
        "Qwen/Qwen3-0.6B",
        parameters=596_049_920,
        layers=28,
        hidden=1024,
        feed_forward=3072,
        heads=16,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        context_tokens=40_960,
    ),
    "qwen3-8b": _dense(
        "Qwen3-8B",
        "Qwen/Qwen3-8B",
        parameters=8_190_735_360,
        layers=36,
        hidden=4096,
        feed_forward=12_288,
        heads=32,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        context_tokens=40_960,
    ),
    "qwen3-32b": _dense(
        "Qwen3-32B",
        "Qwen/Qwen3-32B",
        parameters=32_762_123_264,
        layers=64,
        hidden=5120,
        feed_forward=25_600,
        heads=64,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        context_tokens=40_960,
    ),
    "qwen3-30b-a3b": _qwen3_30b(),
    "gpt-oss-20b": _gpt_oss(
        "gpt-oss-20b", "openai/gpt-oss-20b", parameters=20.9e9, active=3.6e9, layers=24, experts=32
    ),
    "gpt-oss-120b": _gpt_oss(
        "gpt-oss-120b", "openai/gpt-oss-120b", parameters=116.8e9, active=5.1e9, layers=36, experts=128
    ),
    "deepseek-v3": _deepseek_v3(),
}
"""By the name an option takes."""

DRAFT_MODELS: Mapping[str, str] = {
    "llama-3.1-8b": "llama-3.2-1b",
    "llama-3.1-70b": "llama-3.2-1b",
    "qwen3-8b": "qwen3-0.6b",
    "qwen3-32b": "qwen3-0.6b",
    "qwen3-30b-a3b": "qwen3-0.6b",
}
"""The small model of the same family and vocabulary that drafts for a target, where no other is named."""
