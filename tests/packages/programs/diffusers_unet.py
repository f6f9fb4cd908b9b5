"""diffusers: a small UNet, an autoencoder, schedulers, a training step, a pipeline that draws noise away."""
import tempfile

import torch
from diffusers import (
    AutoencoderKL,
    DDIMPipeline,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)
from diffusers.training_utils import EMAModel

torch.manual_seed(0)
unet = UNet2DModel(sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32),
                   norm_num_groups=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                   up_block_types=("AttnUpBlock2D", "UpBlock2D"))
scheduler = DDPMScheduler(num_train_timesteps=20)
optimizer, ema = torch.optim.AdamW(unet.parameters(), lr=1e-3), EMAModel(unet.parameters())
images = torch.rand(4, 3, 8, 8) * 2 - 1
for step in range(3):
    noise, times = torch.randn_like(images), torch.randint(0, 20, (4,))
    loss = torch.nn.functional.mse_loss(unet(scheduler.add_noise(images, noise, times), times).sample, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.step(unet.parameters())
    print("step", step, f"{loss.item():.5f}")
for kind in (DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
    chosen = kind(num_train_timesteps=20)
    chosen.set_timesteps(4)
    sample = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1)) * chosen.init_noise_sigma
    for t in chosen.timesteps:
        with torch.no_grad():
            predicted = unet(chosen.scale_model_input(sample, t), t).sample
        sample = chosen.step(predicted, t, sample).prev_sample
    print(kind.__name__, chosen.timesteps.tolist(), f"{sample.mean().item():.4f} {sample.std().item():.4f}")
for pipeline in (DDPMPipeline(unet, scheduler), DDIMPipeline(unet, DDIMScheduler(num_train_timesteps=20))):
    pipeline.set_progress_bar_config(disable=True)
    drawn = pipeline(batch_size=1, generator=torch.Generator().manual_seed(0), num_inference_steps=3, output_type="np")
    print(type(pipeline).__name__, drawn.images.shape, f"{drawn.images.mean():.4f}")
torch.manual_seed(1)
vae = AutoencoderKL(block_out_channels=(16, 16), norm_num_groups=8, sample_size=16, latent_channels=2,
                    down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
codes = vae.encode(torch.rand(1, 3, 16, 16)).latent_dist
print("vae", codes.mean.shape, f"{codes.kl().item():.4f} {vae.decode(codes.mode()).sample.mean().item():.5f}")
conditioned = UNet2DConditionModel(sample_size=8, in_channels=2, out_channels=2, layers_per_block=1, norm_num_groups=8,
                                   block_out_channels=(16, 32), cross_attention_dim=12, attention_head_dim=4,
                                   down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                   up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))
out = conditioned(torch.rand(1, 2, 8, 8), 5, encoder_hidden_states=torch.rand(1, 3, 12)).sample
print("conditioned", f"{out.mean().item():.5f} {out.std().item():.5f}")
with tempfile.TemporaryDirectory() as folder:
    DDPMPipeline(unet, scheduler).save_pretrained(folder)
    again = DDPMPipeline.from_pretrained(folder)
    print("saved and loaded", all(torch.equal(a, b) for a, b in zip(unet.parameters(), again.unet.parameters())))
