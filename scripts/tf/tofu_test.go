package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheProviderOfTerraformsMirrorIsFoundByOpenTofu(t *testing.T) {
	t.Parallel()
	from, dir := t.TempDir(), t.TempDir()
	const provider = "6.47.0/linux_amd64/terraform-provider-aws"
	write(t, filepath.Join(from, terraformAddress, provider), "the provider")
	config := filepath.Join(dir, "terraform.rc")
	write(t, config, "disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n"+
		"    path    = \""+from+"\"\n    include = [\"example.com/a/b\"]\n  }\n}\n")

	mirrors, err := filesystemMirrors(config)
	if err != nil || len(mirrors) != 1 || mirrors[0] != from {
		t.Fatalf("got mirrors %q, %v, want %q", mirrors, err, from)
	}
	generated, err := mirrorForOpenTofu(mirrors, dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "mirror", openTofuAddress, provider))
	if err != nil || string(got) != "the provider" {
		t.Errorf("got %q, %v, want the provider", got, err)
	}
	text, err := os.ReadFile(generated)
	if err != nil || !strings.Contains(string(text), filepath.Join(dir, "mirror")) {
		t.Errorf("the configuration does not name the mirror: %s, %v", text, err)
	}
}

func TestWithoutAConfigurationThereIsNoMirror(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", filepath.Join(t.TempDir(), "missing")} {
		if got, err := filesystemMirrors(path); len(got) > 0 || err != nil {
			t.Errorf("%q: got %q, %v, want none", path, got, err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
