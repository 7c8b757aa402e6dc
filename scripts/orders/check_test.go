package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
)

// TestCheck checks a machine that has everything, apart from the changes.
func TestCheck(t *testing.T) {
	t.Parallel()
	const keys, container = "aws_access_key_id = id\n", "AWS_CONTAINER_CREDENTIALS_"
	for claim, tt := range map[string]struct {
		changes []string // of variables and files
		want    string   // what is printed, in parts, and then the error
	}{
		"everything":           {nil, "ok       credentials  AWS_PROFILE\nok       Stripe key   test mode\n"},
		"a live key":           {[]string{"STRIPE_SECRET_KEY=rk_live_canary"}, "LIVE mode"},
		"no Terraform":         {[]string{"PATH="}, "install Terraform\nmissing terraform"},
		"no credentials":       {[]string{"AWS_PROFILE="}, "aws configure\nmissing credentials"},
		"half a pair of keys":  {[]string{"AWS_PROFILE=", "AWS_ACCESS_KEY_ID=x"}, "aws configure\nmissing credentials"},
		"no region":            {[]string{"AWS_REGION="}, "export AWS_REGION\nmissing region"},
		"no key":               {[]string{"STRIPE_SECRET_KEY="}, "dashboard.stripe.com\nmissing Stripe key"},
		"a key without a mode": {[]string{"STRIPE_SECRET_KEY=sk_x"}, "dashboard.stripe.com\nmissing Stripe key"},
		"a publishable key":    {[]string{"STRIPE_SECRET_KEY=pk_test_canary"}, "missing Stripe key"},
		"nothing": {
			[]string{"PATH=", "AWS_PROFILE=", "AWS_REGION=", "STRIPE_SECRET_KEY="},
			"not ready to deploy: missing terraform, credentials, region, Stripe key",
		},
		"keys before a profile": {[]string{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=canary"}, "ok       credentials  AWS_ACCESS_KEY_ID"},
		"a web identity":        {[]string{"AWS_PROFILE=", "AWS_WEB_IDENTITY_TOKEN_FILE=/token"}, "AWS_WEB_IDENTITY_TOKEN_FILE"},
		"a container":           {[]string{"AWS_PROFILE=", container + "RELATIVE_URI=/v2"}, container + "RELATIVE_URI"},
		"another container":     {[]string{"AWS_PROFILE=", container + "FULL_URI=http://x"}, container + "FULL_URI"},
		"keys in a file":        {[]string{"AWS_PROFILE=", "/home/.aws/credentials=" + keys}, "/home/.aws/credentials"},
		"keys in a named file":  {[]string{"AWS_PROFILE=", "AWS_SHARED_CREDENTIALS_FILE=/k", "/k=" + keys}, "credentials  /k"},
		"a role":                {[]string{"AWS_PROFILE=", "/home/.aws/config=role_arn = arn\n"}, "/home/.aws/config"},
		"single sign-on in a named file": {
			[]string{"AWS_PROFILE=", "AWS_CONFIG_FILE=/etc/aws", "/etc/aws=[default]\nsso_session = shop\n"}, "/etc/aws",
		},
		"a config file with only a region": {
			[]string{"AWS_PROFILE=", "AWS_REGION=", "/home/.aws/config=[default]\nregion = eu-west-1\n"},
			"ok       region       /home/.aws/config\nmissing credentials",
		},
		"a region in terraform.tfvars": {[]string{"AWS_REGION=", `infra/terraform/terraform.tfvars=region = "eu-west-1"`}, "terraform.tfvars"},
		"a region in the variables of the environment": {
			[]string{"AWS_REGION=", "ENV=prod", `infra/terraform/environments/prod.tfvars=region = "eu-west-1"`}, "environments/prod.tfvars",
		},
	} {
		environ := env.ToMap(append([]string{
			"HOME=/home", "PATH=/bin", "AWS_PROFILE=shop", "AWS_REGION=eu-west-1", "STRIPE_SECRET_KEY=sk_test_canary",
		}, tt.changes...))
		m := machine{env: environ, read: func(path string) string { return environ[path] }, lookPath: func(program string) (string, error) {
			if environ["PATH"] == "" {
				return "", errors.New("not found")
			}
			return environ["PATH"] + "/" + program, nil
		}}
		var out strings.Builder
		if err := printNeeds(&out, m.needs()); err != nil {
			out.WriteString(err.Error())
		}
		part := missingPart(out.String(), tt.want)
		ready := !strings.Contains(out.String(), "not ready to deploy")
		if part != "" || ready == strings.Contains(tt.want, "missing ") || strings.Contains(out.String(), "canary") {
			t.Errorf("%s: printed\n%s\nwant %q, and no part of the key", claim, &out, part)
		}
	}
}
