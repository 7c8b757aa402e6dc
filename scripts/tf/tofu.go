package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsimple"
)

// Where Terraform and OpenTofu look for hashicorp/aws in a mirror.
const (
	terraformAddress = "registry.terraform.io/hashicorp/aws"
	openTofuAddress  = "registry.opentofu.org/hashicorp/aws"
)

// testWithOpenTofu runs the tests with OpenTofu, in a copy of the module of its own: the two programs would overwrite each
// other's .terraform folder and lock file.
func testWithOpenTofu(ctx context.Context, tofu string, out io.Writer) error {
	c, closeCopy, err := newChecker(out)
	if err != nil {
		return err
	}
	defer closeCopy()
	if tofu == "" {
		c.say("SKIPPED OpenTofu: `make tofu` builds it.")
		return nil
	}
	if c.program, err = filepath.Abs(tofu); err != nil {
		return err
	}
	mirrors, err := filesystemMirrors(os.Getenv(configFile))
	if err != nil {
		return err
	}
	if len(mirrors) > 0 {
		config, err := mirrorForOpenTofu(mirrors, c.dir)
		if err != nil {
			return err
		}
		c.env = append(os.Environ(), configFile+"="+config)
	}
	if why, err := c.start(ctx); why != "" || err != nil {
		if why != "" {
			c.say("SKIPPED OpenTofu: its provider registry cannot be reached (%s).", why)
		}
		return err
	}
	return errors.Join(c.validate(ctx), c.test(ctx))
}

// configFile names the variable that Terraform and OpenTofu both read.
const configFile = "TF_CLI_CONFIG_FILE"

// filesystemMirrors returns the folders of a CLI configuration's filesystem mirrors.
func filesystemMirrors(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304, G703: Terraform reads the same file
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // Terraform warns of it
	}
	if err != nil {
		return nil, err
	}
	var config struct {
		Installation []struct {
			Mirrors []struct {
				Path string   `hcl:"path"`
				Rest hcl.Body `hcl:",remain"`
			} `hcl:"filesystem_mirror,block"`
			Rest hcl.Body `hcl:",remain"`
		} `hcl:"provider_installation,block"`
		Rest hcl.Body `hcl:",remain"`
	}
	if err := hclsimple.Decode("cli.hcl", text, nil, &config); err != nil {
		return nil, fmt.Errorf("%s %s: %w", configFile, path, err)
	}
	var mirrors []string
	for _, installation := range config.Installation {
		for _, mirror := range installation.Mirrors {
			mirrors = append(mirrors, mirror.Path)
		}
	}
	return mirrors, nil
}

// mirrorForOpenTofu lays out the provider of Terraform's mirrors at the address under which OpenTofu looks for it, below
// dir, and returns a CLI configuration that names that mirror.
func mirrorForOpenTofu(mirrors []string, dir string) (config string, err error) {
	mirror := filepath.Join(dir, "mirror")
	for _, from := range mirrors {
		// A mirror holds VERSION/PLATFORM folders or zip files; OpenTofu follows a link only in the place of one of these.
		for _, pattern := range []string{"*/*", "*.zip"} {
			found, err := filepath.Glob(filepath.Join(from, terraformAddress, pattern))
			if err != nil {
				return "", err
			}
			for _, provider := range found {
				name, err := filepath.Rel(filepath.Join(from, terraformAddress), provider)
				if err != nil {
					return "", err
				}
				link := filepath.Join(mirror, openTofuAddress, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(provider, link)); err != nil {
					return "", err
				}
			}
		}
	}
	config = filepath.Join(dir, "opentofu.rc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	return config, os.WriteFile(config, []byte(text), 0o600)
}
