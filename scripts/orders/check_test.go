package main

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

// TestCheck checks a machine that has everything, apart from the changes.
func TestCheck(t *testing.T) {
	t.Parallel()
	const keys = "aws_access_key_id = id\n"
	noProfile := func(more map[string]string) map[string]string {
		all := map[string]string{"AWS_PROFILE": ""}
		maps.Copy(all, more)
		return all
	}
	for claim, tt := range map[string]struct {
		changes map[string]string // of variables and files
		want    string            // what is printed, in parts, and then the error
	}{
		"everything":           {nil, "ok       credentials  AWS_PROFILE\nok       Stripe key   test mode\n"},
		"a live key":           {map[string]string{"STRIPE_SECRET_KEY": "rk_live_canary"}, "LIVE mode"},
		"no Terraform":         {map[string]string{"PATH": ""}, "install Terraform\nmissing terraform"},
		"no credentials":       {noProfile(nil), "aws configure\nmissing credentials"},
		"half a pair of keys":  {noProfile(map[string]string{"AWS_ACCESS_KEY_ID": "x"}), "aws configure\nmissing credentials"},
		"no region":            {map[string]string{"AWS_REGION": ""}, "export AWS_REGION\nmissing region"},
		"no key":               {map[string]string{"STRIPE_SECRET_KEY": ""}, "dashboard.stripe.com\nmissing Stripe key"},
		"a key without a mode": {map[string]string{"STRIPE_SECRET_KEY": "sk_x"}, "dashboard.stripe.com\nmissing Stripe key"},
		"a publishable key":    {map[string]string{"STRIPE_SECRET_KEY": "pk_test_canary"}, "missing Stripe key"},
		"nothing": {
			map[string]string{"PATH": "", "AWS_PROFILE": "", "AWS_REGION": "", "STRIPE_SECRET_KEY": ""},
			"not ready to deploy: missing terraform, credentials, region, Stripe key",
		},
		"keys before a profile": {
			map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "canary"}, "ok       credentials  AWS_ACCESS_KEY_ID",
		},
		"a web identity": {noProfile(map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}), "AWS_WEB_IDENTITY_TOKEN_FILE"},
		"a container": {
			noProfile(map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2"}), "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		},
		"another container": {
			noProfile(map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://x"}), "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		},
		"keys in a file":       {noProfile(map[string]string{"/home/.aws/credentials": keys}), "/home/.aws/credentials"},
		"keys in a named file": {noProfile(map[string]string{"AWS_SHARED_CREDENTIALS_FILE": "/k", "/k": keys}), "credentials  /k"},
		"a role":               {noProfile(map[string]string{"/home/.aws/config": "role_arn = arn\n"}), "/home/.aws/config"},
		"single sign-on in a named file": {
			noProfile(map[string]string{"AWS_CONFIG_FILE": "/etc/aws", "/etc/aws": "[default]\nsso_session = shop\n"}), "/etc/aws",
		},
		"a config file with only a region": {
			noProfile(map[string]string{"AWS_REGION": "", "/home/.aws/config": "[default]\nregion = eu-west-1\n"}),
			"ok       region       /home/.aws/config\nmissing credentials",
		},
		"a region in terraform.tfvars": {
			map[string]string{"AWS_REGION": "", "infra/terraform/terraform.tfvars": `region = "eu-west-1"`}, "terraform.tfvars",
		},
		"a region in the variables of the environment": {
			map[string]string{"AWS_REGION": "", "ENV": "prod", "infra/terraform/environments/prod.tfvars": `region = "eu-west-1"`},
			"environments/prod.tfvars",
		},
	} {
		env := map[string]string{
			"HOME": "/home", "PATH": "/bin", "AWS_PROFILE": "shop", "AWS_REGION": "eu-west-1",
			"STRIPE_SECRET_KEY": "sk_test_canary",
		}
		maps.Copy(env, tt.changes)
		m := machine{env: env, read: func(path string) string { return env[path] }, lookPath: func(program string) (string, error) {
			if env["PATH"] == "" {
				return "", errors.New("not found")
			}
			return env["PATH"] + "/" + program, nil
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
