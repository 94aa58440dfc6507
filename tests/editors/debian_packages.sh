# shellcheck shell=bash
# Programs of newer Debians beside an older one, for the install_….sh here. To be sourced; `folder` and `script` are set before.
# Nothing of the system is changed: packages are only unpacked, with the C library of their own suite.

give_up() { echo "$script: $2" >&2; exit "$1"; }

# The mirror this machine's own apt uses, in either of its notations.
find_mirror() {
  find /etc/apt -name '*.sources' -exec awk '$1 == "URIs:" && $2 ~ /debian\/?$/ { print $2 }' {} +
  find /etc/apt -name '*.list' -exec awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /debian\/?$/) print $i }' {} +
}

# make_apt FOLDER SUITE: an apt that keeps all its files there and knows one suite. Proxies and certificates stay those of the system.
make_apt() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$1"/etc/apt/{preferences.d,sources.list.d,trusted.gpg.d} "$1"/var/lib/apt/lists/partial \
    "$1"/var/lib/dpkg "$1"/var/cache/apt/archives/partial
  : > "$1/var/lib/dpkg/status"
  echo "deb [signed-by=$keyring] $mirror $2 main" > "$1/etc/apt/sources.list"
  cat > "$1/apt.conf" <<CONFIGURATION
Dir "$1";
Dir::Etc::parts "/etc/apt/apt.conf.d";
Dir::State::status "$1/var/lib/dpkg/status";
APT::Architecture "$(dpkg --print-architecture)";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Check-Valid-Until "false";
Acquire::Retries "2";
CONFIGURATION
}

# unpack SUITE ROOT "PACKAGES" ["PACKAGES"]: packages with all they need; and packages without, which may be missing.
unpack() {
  local suite=$1 root=$2 packages=$3 extra=${4:-} apt=$2.apt package
  rm -rf "$root" "$apt"
  mkdir -p "$root"
  make_apt "$apt" "$suite"
  (
    export APT_CONFIG=$apt/apt.conf
    apt-get -qq update -o APT::Update::Error-Mode=any >&2 || give_up 3 "cannot read the list of packages of $suite at $mirror"
    # shellcheck disable=SC2086
    apt-get -qq -y --download-only install $packages >/dev/null || give_up 3 "cannot download $packages of $suite from $mirror"
    cd "$apt/var/cache/apt/archives"
    for package in $extra; do apt-get -qq download "$package" 2>/dev/null || true; done
  )
  for package in "$apt"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  rm -rf "$apt"
}

# make_program NAME ROOT PATH [LINE…]: FOLDER/NAME starts the program at PATH below ROOT, after LINEs of shell.
make_program() {
  local name=$1 root=$2 path=$3 loader libraries
  shift 3
  loader=$(find "$root/usr" "$root" -maxdepth 4 -name 'ld-linux-*.so.*' | head -n 1)
  libraries=$(find "$root/usr/lib" -maxdepth 1 -name '*-linux-gnu*' | head -n 1)
  {
    echo '#!/bin/sh'
    printf '%s\n' "$@"
    echo "exec \"$loader\" --argv0 \"${path##*/}\" --library-path \"$libraries\" \"$root/$path\" \"\$@\""
  } > "$folder/$name"
  chmod +x "$folder/$name"
  "$folder/$name" --version | head -n 1
}

# starts NAME: it is there and works.
starts() { "$folder/$1" --version >/dev/null 2>&1; }

command -v apt-get >/dev/null || give_up 1 "this script needs Debian's apt-get"
mirror=$(find_mirror | sort -u | sed -n 1p)
[ -n "$mirror" ] || give_up 3 "apt knows no Debian mirror"
mkdir -p "$folder"
