#!/bin/bash
#SBATCH --job-name=variegate
#SBATCH --time=24:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --gpus-per-node=8
#SBATCH hetjob
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
# One component with GPUs, which trains, and one without. See docs/deploy.md.

set -euo pipefail
umask 077
export RAY_AUTH_MODE=token
export RAY_AUTH_TOKEN_PATH="$HOME/.ray/job-$SLURM_JOB_ID"
mkdir -p "$HOME/.ray"
python -c "import secrets; print(secrets.token_hex(32), end='')" > "$RAY_AUTH_TOKEN_PATH"

# Ports of this job, so that two jobs on one node do not meet.
port=$((20000 + SLURM_JOB_ID % 400 * 100))
ports="--node-manager-port=$((port + 1)) --object-manager-port=$((port + 2))"
ports="$ports --min-worker-port=$((port + 10)) --max-worker-port=$((port + 99))"
head=$(hostname --ip-address | cut -d ' ' -f 1)

ray start --head --node-ip-address="$head" --port="$port" --num-cpus=0 --include-dashboard=false $ports
trap 'ray stop; rm -f "$RAY_AUTH_TOKEN_PATH"' EXIT
srun --het-group=1 --cpus-per-task=32 ray start --address="$head:$port" --num-cpus=32 --block $ports &

export RAY_ADDRESS="$head:$port"
torchrun --nproc-per-node 8 --max-restarts 3 train.py
