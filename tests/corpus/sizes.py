"""What the programs of the corpus are given on their command lines, beside their own defaults.

Their defaults are tiny and take a few steps, so that a comparison loss by loss is quick.
"""

# At least fifty steps in each loop.
LONGER = {
    "char_rnn": "--steps 56",
    "cnn": "--epochs 14",
    "conditional_gans": "--steps 56",
    "custom_function": "--steps 56",
    "cyclegan": "--steps 56",
    "dcgan": "--steps 56",
    "detector": "--steps 56",
    "dqn": "--episodes 28",
    "gpt": "--steps 56",
    "graph": "--epochs 56",
    "image_models": "--steps 56",
    "lstm_cell": "--steps 56",
    "mixed_precision": "--epochs 10",
    "mlp": "--epochs 19",
    "policies": "--episodes 56",
    "representation": "--steps 56",
    "style_transfer": "--steps 56",
    "super_resolution": "--steps 56",
    "translation": "--steps 56",
    "unet": "--epochs 14",
    "vae": "--steps 56",
    "vq_vae": "--steps 56",
    "wgan_clipping": "--steps 112",
    "wgan_gp": "--steps 112",
}

# The step behind which a loop has settled, where it is not the third: an epoch has several steps
# and an evaluation, so that its third round ends later.
SETTLED = {"mlp": 10, "unet": 13}

# Sizes that small scripts of this kind have.
LARGER = {
    "char_rnn": "--hidden-size 128 --seq-len 64",
    "cnn": "--samples 256 --batch-size 64",
    "conditional_gans": "--batch 32 --side 32 --latent 64 --channels 32",
    "custom_function": "--batch 64 --features 64 --width 256",
    "cyclegan": "--batch 1 --side 64 --width 16",
    "dcgan": "--batch 32 --nz 64 --ngf 32 --ndf 32",
    "detector": "--batch 8 --image-size 64 --width 32",
    "dqn": "--episodes 45 --batch-size 64 --hidden 128",
    "gpt": "--batch-size 16 --block-size 64 --n-head 4 --n-embd 128",
    "graph": "--nodes 1024 --edges 4096 --features 128 --hidden 64",
    "image_models": "--batch 32 --image-size 32 --width 16",
    "lstm_cell": "--sequences 34 --length 40 --hidden 51",
    "mixed_precision": "--batch 32 --image-size 32 --width 32",
    "mlp": "--samples 192 --batch-size 64 --hidden 256",
    "policies": "--length 16 --hidden 128",
    "representation": "--batch 64 --features 64 --width 256",
    "style_transfer": "--image-size 64 --width 32",
    "super_resolution": "--batch 4 --side 16 --width 32",
    "translation": "--batch 16 --length 32 --emb-size 128 --layers 2 --ff 256",
    "unet": "--batch 4 --height 66 --width 64 --channels 16",
    "vae": "--batch 64 --side 28 --hidden 256 --latent 20",
    "vq_vae": "--batch 16 --image-size 32 --width 64 --embeddings 128 --dim 16",
    "wgan_clipping": "--batch 64 --features 256 --hidden 128 --latent 32",
    "wgan_gp": "--batch 64 --latent-dim 64 --img-size 28 --width 128",
}
