class Cairn < Formula
  desc "Sessions, memory and an audit trail for AI agents, in one executable"
  homepage "@URL@"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    depends_on macos: :ventura
    on_arm do
      url "@URL@/cairn-@VERSION@-darwin-arm64.tar.gz"
      sha256 "@SHA256:darwin-arm64@"
    end
    on_intel do
      url "@URL@/cairn-@VERSION@-darwin-x64.tar.gz"
      sha256 "@SHA256:darwin-x64@"
    end
  end

  on_linux do
    on_arm do
      url "@URL@/cairn-@VERSION@-linux-arm64.tar.gz"
      sha256 "@SHA256:linux-arm64@"
    end
    on_intel do
      url "@URL@/cairn-@VERSION@-linux-x64.tar.gz"
      sha256 "@SHA256:linux-x64@"
    end
  end

  def install
    bin.install "cairn"
  end

  service do
    run [opt_bin/"cairn", "serve", "--data-dir", var/"cairn"]
    keep_alive crashed: true
    log_path var/"log/cairn.log"
    error_log_path var/"log/cairn.log"
  end

  test do
    assert_match "lmdb: loads", shell_output("#{bin}/cairn version --native")
  end
end
