#!/usr/bin/env bash
# Gradescope runs this once, when it builds the image.
set -e
apt-get update && apt-get install -y python3 python3-pip
cd /autograder/source
python3 -m pip install --break-system-packages torch --index-url https://download.pytorch.org/whl/cpu
python3 -m pip install --break-system-packages -r requirements.txt
