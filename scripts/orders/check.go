package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/caarlos0/env/v11"

	"orderonce/adapters/stripe"
	"orderonce/scripts/orders/shell"
)

type check struct{}

// Run prints everything that a deployment needs, so that Terraform does not stop at the
// first thing that is missing.
func (check) Run(sh shell.Shell) error {
	m := machine{env: env.ToMap(sh.Environ), lookPath: exec.LookPath, read: func(path string) string {
		text, _ := os.ReadFile(filepath.Clean(path)) // an unreadable file counts as missing
		return string(text)
	}}
	return printNeeds(sh.Out, m.needs())
}

// machine is the computer that make deploy runs on.
type machine struct {
	env      map[string]string
	lookPath func(program string) (string, error)
	read     func(path string) string // "" if there is no such file
}

// need is one thing that a deployment needs: where it was found, or how to get it.
type need struct{ name, found, remedy string }

func (m machine) needs() []need {
	program, _ := m.lookPath("terraform")
	return []need{
		{"terraform", program, "install Terraform 1.11 or later: https://developer.hashicorp.com/terraform/install"},
		{
			"credentials", m.credentials(),
			"aws configure, aws sso login, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
		},
		{"region", m.region(), "export AWS_REGION=eu-west-1, or yours"},
		{"Stripe key", m.stripeKey(), "export STRIPE_SECRET_KEY=sk_test_..., from https://dashboard.stripe.com/test/apikeys"},
	}
}

// credentials names the first source, in the order of the AWS SDKs. It does not check
// that they are valid.
func (m machine) credentials() string {
	if m.env["AWS_ACCESS_KEY_ID"] != "" && m.env["AWS_SECRET_ACCESS_KEY"] != "" {
		return "AWS_ACCESS_KEY_ID"
	}
	return cmp.Or(m.first(
		[]string{
			"AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
			"AWS_CONTAINER_CREDENTIALS_FULL_URI",
		},
		`aws_access_key_id|sso_\w+|role_arn|credential_process|login_session`,
		m.file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), m.file("AWS_CONFIG_FILE", "config"),
	))
}

func (m machine) region() string {
	variable, path := m.first([]string{"TF_VAR_region", "AWS_REGION", "AWS_DEFAULT_REGION"}, "region",
		"infra/terraform/environments/"+m.env["ENV"]+".tfvars", // make deploy ENV=prod
		"infra/terraform/terraform.tfvars", m.file("AWS_CONFIG_FILE", "config"))
	if variable != "" {
		return variable + "=" + m.env[variable]
	}
	return path
}

// first returns the first of the variables that is set, or else the first of the files
// that sets a name of a pattern.
func (m machine) first(variables []string, name string, files ...string) (variable, path string) {
	for _, variable := range variables {
		if m.env[variable] != "" {
			return variable, ""
		}
	}
	sets := regexp.MustCompile(`(?m)^\s*(` + name + `)\s*=`)
	for _, path := range files {
		if sets.MatchString(m.read(path)) {
			return "", path
		}
	}
	return "", ""
}

// stripeKey returns the key's mode and nothing else of it.
func (m machine) stripeKey() string {
	key := m.env["STRIPE_SECRET_KEY"]
	switch {
	case stripe.CheckKey(key, "") != nil:
		return ""
	case stripe.Live(key):
		return "LIVE mode: this deployment charges real cards"
	}
	return "test mode"
}

// file returns the path of an AWS file: the variable's value, or a file in the home
// directory.
func (m machine) file(variable, name string) string {
	if path := m.env[variable]; path != "" {
		return path
	}
	return filepath.Join(m.env["HOME"], ".aws", name)
}

func printNeeds(w io.Writer, needs []need) error {
	var missing []string
	for _, n := range needs {
		if n.found != "" {
			fmt.Fprintf(w, "  ok       %-12s %s\n", n.name, n.found)
			continue
		}
		missing = append(missing, n.name)
		fmt.Fprintf(w, "  missing  %-12s %s\n", n.name, n.remedy)
	}
	if len(missing) > 0 {
		return fmt.Errorf("not ready to deploy: missing %s", strings.Join(missing, ", "))
	}
	return nil
}
