#!/bin/sh
# Makes FOLDER/python: Debian's Python 3.11 for aarch64 with NumPy, which runs in QEMU. Nothing is installed elsewhere.
# Usage: tools/aarch64_python.sh FOLDER. Needs qemu-user, dpkg, apt and debian-archive-keyring (Debian, Ubuntu).
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -x "$folder/python" ] && exit 0
for needed in qemu-aarch64 dpkg apt-get; do
  command -v "$needed" >/dev/null || { echo "$needed is missing; install qemu-user, on Debian or Ubuntu" >&2; exit 2; }
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || { echo "$keyring is missing; install debian-archive-keyring" >&2; exit 2; }

# An apt of its own: another architecture, another distribution perhaps, no rights.
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/root" \
  "$folder/apt/etc/apt.conf.d" "$folder/apt/etc/preferences.d"
: >"$folder/apt/status"
echo "deb [signed-by=$keyring] http://deb.debian.org/debian bookworm main" >"$folder/apt/sources.list"
cat >"$folder/apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Dir::Etc "$folder/apt/etc";
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$folder/apt";
Dir::State::lists "$folder/apt/lists";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt/cache";
Dir::Log "$folder/apt";
END
export APT_CONFIG="$folder/apt/apt.conf"
apt-get --quiet=2 update
apt-get --quiet=2 --yes --download-only install python3.11-minimal libpython3.11-stdlib libstdc++6 >/dev/null
for package in "$folder"/apt/cache/archives/*.deb; do
  dpkg --extract "$package" "$folder/root"
done
"${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/packages" \
  --only-binary=:all: --python-version 3.11 --implementation cp \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
  --platform manylinux2014_aarch64 "numpy>=1.26,<3"

cat >"$folder/python.new" <<END
#!/bin/sh
exec qemu-aarch64 -L "$folder/root" -E PYTHONPATH="$folder/packages:\${PYTHONPATH-}" "$folder/root/usr/bin/python3.11" "\$@"
END
chmod +x "$folder/python.new"
mv "$folder/python.new" "$folder/python"
