"""captum: attributions of many methods for a small convolutional network and an embedding."""
import numpy
import torch
from captum.attr import (
    DeepLift,
    DeepLiftShap,
    FeatureAblation,
    FeaturePermutation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    LayerConductance,
    LayerGradCam,
    LayerIntegratedGradients,
    NeuronGradient,
    NoiseTunnel,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from captum.influence import TracInCP  # noqa: F401
from captum.metrics import infidelity, sensitivity_max

torch.manual_seed(0), numpy.random.seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                          torch.nn.Linear(36, 3)).eval()
x, zero = torch.rand(2, 1, 8, 8), torch.zeros(2, 1, 8, 8)


def show(name, value):
    print(name, tuple(value.shape), f"{value.double().sum().item():.5f} {value.double().abs().max().item():.5f}")


for kind in (Saliency, InputXGradient, GuidedBackprop, FeatureAblation):
    show(kind.__name__, kind(net).attribute(x, target=1))
value, delta = IntegratedGradients(net).attribute(x, zero, target=1, return_convergence_delta=True)
show("IntegratedGradients", value)
print("delta", [round(d, 4) for d in delta.tolist()])
value, delta = DeepLift(net).attribute(x, zero, target=1, return_convergence_delta=True)
show("DeepLift", value)
print("delta", [round(abs(d), 4) for d in delta.tolist()])
show("DeepLiftShap", DeepLiftShap(net).attribute(x, torch.rand(3, 1, 8, 8), target=0))
torch.manual_seed(1)
show("GradientShap", GradientShap(net).attribute(x, torch.cat([zero, x]), target=0))
show("Occlusion", Occlusion(net).attribute(x, (1, 3, 3), strides=(1, 2, 2), target=2))
show("Shapley", ShapleyValueSampling(net).attribute(x, target=0, n_samples=2, feature_mask=torch.arange(64).reshape(1, 1, 8, 8) // 16))
show("LayerConductance", LayerConductance(net, net[0]).attribute(x, zero, target=1))
show("LayerGradCam", LayerGradCam(net, net[0]).attribute(x, target=1))
show("NeuronGradient", NeuronGradient(net, net[3]).attribute(x, (5,)))
torch.manual_seed(2)
show("NoiseTunnel", NoiseTunnel(Saliency(net)).attribute(x, nt_type="smoothgrad_sq", nt_samples=3, target=1))
torch.manual_seed(3)
show("FeaturePermutation", FeaturePermutation(net).attribute(x, target=1, feature_mask=torch.arange(64).reshape(1, 1, 8, 8) // 32))
text = torch.nn.Sequential(torch.nn.Embedding(10, 6), torch.nn.Flatten(), torch.nn.Linear(24, 2))
words = torch.tensor([[1, 4, 2, 7]])
show("LayerIntegratedGradients", LayerIntegratedGradients(text, text[0]).attribute(words, torch.zeros_like(words), target=1))
torch.manual_seed(4)
show("KernelShap", KernelShap(net).attribute(x[:1], target=1, n_samples=20, feature_mask=torch.arange(64).reshape(1, 1, 8, 8) // 16))
print("sensitivity", f"{sensitivity_max(Saliency(net).attribute, x, target=1, n_perturb_samples=1).sum().item() >= 0}")
attributions = Saliency(net).attribute(x, target=1)
torch.manual_seed(5)
show("infidelity", infidelity(net, lambda inputs: (n := torch.randn_like(inputs) * 0.01, inputs - n), x, attributions, target=1))
