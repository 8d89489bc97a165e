#!/bin/bash
# Workers of a cluster as a Slurm job: sbatch --export=EVERETT_BROKER,EVERETT_BROKER_TOKEN_FILE deploy/slurm.sh
# The token lies in a file that all nodes can read. Workers leave when they have had nothing to do for ten minutes.
#SBATCH --job-name=everett
#SBATCH --ntasks=8
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --time=24:00:00
#SBATCH --signal=INT@120
set -eu
: "${EVERETT_BROKER:?is the address of the broker}"
srun everett worker --workers "$SLURM_CPUS_PER_TASK" --max-memory "$((2 * SLURM_CPUS_PER_TASK))G" --idle 10m
