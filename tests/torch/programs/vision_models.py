"""Training steps of models for images on the device, against those of a CPU. The arguments name
models; without any, all run but those of full size.

Lines `= model | loss | gradients | - | host | draws | seconds`: the differences of the losses and,
in parts of the largest one, of the gradients; the shares of simulated time in operators and in
random draws on the host, in percent; the processor time of a step.
"""

import sys
from collections.abc import Callable
from time import process_time

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor, nn

from kernbench.torch_backend.aten.operators import HostTime

STEPS = 1


class DigitsNet(nn.Module):
    """The network for MNIST of the examples of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3, 1), nn.Conv2d(32, 64, 3, 1)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = torch.flatten(self.dropout1(F.max_pool2d(x, 2)), 1)
        return F.log_softmax(self.fc2(self.dropout2(F.relu(self.fc1(x)))), dim=1)


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.short = nn.Sequential()
        if stride > 1 or channels != width:
            self.short = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.short(x))


def resnet18(width: int = 4) -> nn.Module:
    """ResNet-18 (K. He et al., 2016), with `width` channels in its first blocks instead of 64."""
    stages = [
        layer
        for stage in range(4)
        for layer in (
            Residual(width * max(1, 2**stage // 2), width * 2**stage, 1 if stage == 0 else 2),
            Residual(width * 2**stage, width * 2**stage, 1),
        )
    ]
    return nn.Sequential(
        *(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
        nn.MaxPool2d(3, 2, 1),
        *stages,
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10), nn.LogSoftmax(1)),
    )


class UNet(nn.Module):
    """A U-Net (O. Ronneberger et al., 2015) of two levels: maxima on the way down, bilinear
    upsampling on the way up.
    """

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.down = nn.ModuleList([self._pair(3, width), self._pair(width, 2 * width)])
        self.bottom = self._pair(2 * width, 2 * width)
        self.up = nn.ModuleList([self._pair(4 * width, width), self._pair(2 * width, width)])
        self.last = nn.Conv2d(width, 10, 1)

    @staticmethod
    def _pair(channels: int, width: int) -> nn.Module:
        layers = [
            layer
            for count in (channels, width)
            for layer in (
                nn.Conv2d(count, width, 3, padding=1, padding_mode="reflect"),
                nn.GroupNorm(2, width),
                nn.ReLU(),
            )
        ]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        kept = list[Tensor]()
        for each in self.down:
            kept.append(each(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.bottom(x)
        for each in self.up:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = each(torch.cat([x, kept.pop()], 1))
        return F.log_softmax(self.last(x), 1).mean((2, 3))


class Inverted(nn.Module):
    """A block of MobileNet (M. Sandler et al., 2018; A. Howard et al., 2019): wide, by channel,
    narrow.
    """

    def __init__(self, channels: int, stride: int, activation: Callable[[], nn.Module]) -> None:
        super().__init__()
        wide = 4 * channels
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), activation()),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            *(nn.BatchNorm2d(wide), activation()),
            *(nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels)),
        )
        self.is_residual = stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.is_residual else y


def mobile_net() -> nn.Module:
    """Blocks of both kinds between a first convolution and classes."""
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish()),
        *(Inverted(8, 1, nn.ReLU6), Inverted(8, 2, nn.Hardswish)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10), nn.LogSoftmax(1)),
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "digits": (DigitsNet, (8, 1, 28, 28)),
    "resnet18": (resnet18, (8, 3, 32, 32)),
    "unet": (UNet, (8, 3, 16, 16)),
    "mobilenet": (mobile_net, (8, 3, 16, 16)),
    "resnet18 of full size": (lambda: resnet18(64), (1, 3, 224, 224)),
}
SMALL = ("digits", "resnet18", "unet", "mobilenet")


class Training:
    """A model with the same weights and images on every device."""

    def __init__(self, name: str, device: str) -> None:
        make, shape = MODELS[name]
        torch.manual_seed(0)
        self._model = make().to(device)
        self._images = torch.randn(shape).to(device)
        self._classes = torch.randint(0, 10, shape[:1]).to(device)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.02, momentum=0.9)

    def run(self) -> tuple[list[float], dict[str, Tensor]]:
        """The losses of some steps, and the gradients of the first one."""
        torch.manual_seed(1)
        losses, gradients = list[float](), dict[str, Tensor]()
        for _ in range(STEPS):
            self._optimizer.zero_grad()
            loss = F.nll_loss(self._model(self._images), self._classes)
            loss.backward()
            self._optimizer.step()
            losses.append(loss.item())
            if not gradients:
                named = self._model.named_parameters()
                gradients = {each: parameter.grad.cpu() for each, parameter in named}
        return losses, gradients


def compare(name: str) -> str:
    device, training = torch.ahbm, Training(name, "ahbm")
    device.synchronize()
    begin_ns, host, draws = device.now_ns(), HostTime.elapsed_ps, HostTime.drawn_ps
    begin_s = process_time()
    losses, gradients = training.run()
    seconds = (process_time() - begin_s) / STEPS
    percent_ps = (device.now_ns() - begin_ns) * 10
    shares = [(HostTime.elapsed_ps - host) / percent_ps, (HostTime.drawn_ps - draws) / percent_ps]
    expected, exact = Training(name, "cpu").run()
    of_losses = max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True))
    scale = max(each.abs().max().item() for each in exact.values())
    of_gradients = max((gradients[each] - exact[each]).abs().max().item() / scale for each in exact)
    differences = f"{of_losses:.1e} | {of_gradients:.1e}"
    return f"= {name} | {differences} | - | {shares[0]:.1f} | {shares[1]:.1f} | {seconds:.1f}"


for each in sys.argv[1:] or SMALL:
    print(compare(each), flush=True)
