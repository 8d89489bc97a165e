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
# A worker may use 5 % more than --max-memory before it spills states, and the allotment (2 GiB a processor) is a hard
# limit: 1.75 GiB a processor leave room for that and for what is not states.
srun everett worker --workers "$SLURM_CPUS_PER_TASK" --max-memory "$((1792 * SLURM_CPUS_PER_TASK))M" --idle 10m
