package main

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

// ready returns a machine that has everything, apart from the changes.
func ready(changes map[string]string) machine {
	env := map[string]string{
		"HOME": "/home", "PATH": "/bin", "AWS_PROFILE": "shop", "AWS_REGION": "eu-west-1", "STRIPE_SECRET_KEY": "sk_test_canary",
	}
	maps.Copy(env, changes)
	return machine{
		env: env,
		lookPath: func(program string) (string, error) {
			if env["PATH"] == "" {
				return "", errors.New("not found")
			}
			return env["PATH"] + "/" + program, nil
		},
		read: func(path string) string { return env[path] },
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		changes map[string]string
		printed string
		err     string // "" for none
	}{
		"a machine with everything is ready": {nil, "ok       Stripe key   test mode", ""},
		"a live key is allowed and shown":    {map[string]string{"STRIPE_SECRET_KEY": "rk_live_canary"}, "LIVE mode", ""},
		"no Terraform":                       {map[string]string{"PATH": ""}, "install Terraform", "missing terraform"},
		"no credentials":                     {map[string]string{"AWS_PROFILE": ""}, "aws configure", "missing credentials"},
		"half a pair of keys": {
			map[string]string{"AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "x"}, "aws configure", "missing credentials",
		},
		"no region":            {map[string]string{"AWS_REGION": ""}, "export AWS_REGION", "missing region"},
		"no key":               {map[string]string{"STRIPE_SECRET_KEY": ""}, "dashboard.stripe.com", "missing Stripe key"},
		"a key without a mode": {map[string]string{"STRIPE_SECRET_KEY": "sk_x"}, "dashboard.stripe.com", "missing Stripe key"},
		"a publishable key": {
			map[string]string{"STRIPE_SECRET_KEY": "pk_test_canary"}, "dashboard.stripe.com", "missing Stripe key",
		},
		"everything that is missing is named at once": {
			map[string]string{"PATH": "", "AWS_PROFILE": "", "AWS_REGION": "", "STRIPE_SECRET_KEY": ""},
			"missing", "not ready to deploy: missing terraform, credentials, region, Stripe key",
		},
		"keys in the credentials file are found": {
			map[string]string{"AWS_PROFILE": "", "/home/.aws/credentials": "[default]\naws_access_key_id = id\n"}, "/home/.aws/credentials", "",
		},
		"a single sign-on in a named file is found": {
			map[string]string{"AWS_PROFILE": "", "AWS_CONFIG_FILE": "/etc/aws", "/etc/aws": "[default]\nsso_session = shop\n"}, "/etc/aws", "",
		},
		"a config file with only a region has no credentials": {
			map[string]string{"AWS_PROFILE": "", "AWS_REGION": "", "/home/.aws/config": "[default]\nregion = eu-west-1\n"},
			"ok       region       /home/.aws/config", "missing credentials",
		},
		"a region in terraform.tfvars is found": {
			map[string]string{"AWS_REGION": "", "infra/terraform/terraform.tfvars": `region = "eu-west-1"`}, "terraform.tfvars", "",
		},
		"a region in the variables of the environment is found": {
			map[string]string{"AWS_REGION": "", "ENV": "prod", "infra/terraform/environments/prod.tfvars": `region = "eu-west-1"`},
			"environments/prod.tfvars", "",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := printNeeds(&out, ready(tt.changes).needs())
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error = %v, want %q", err, tt.err)
			}
			if got := out.String(); !strings.Contains(got, tt.printed) || strings.Contains(got, "canary") {
				t.Errorf("printed\n%s\nwant %q in it, and no part of the key", got, tt.printed)
			}
		})
	}
}

func TestCredentialsAreFoundInTheOrderOfTheSDKs(t *testing.T) {
	t.Parallel()
	pair := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_PROFILE": "shop"}
	for want, changes := range map[string]map[string]string{
		"AWS_ACCESS_KEY_ID":                      pair, // before a profile
		"AWS_PROFILE":                            {"AWS_PROFILE": "shop"},
		"AWS_WEB_IDENTITY_TOKEN_FILE":            {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"},
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2"},
		"AWS_CONTAINER_CREDENTIALS_FULL_URI":     {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://localhost"},
		"/home/.aws/config":                      {"/home/.aws/config": "[default]\nrole_arn = arn:aws:iam::1:role/shop\n"},
		"/etc/keys":                              {"AWS_SHARED_CREDENTIALS_FILE": "/etc/keys", "/etc/keys": "aws_access_key_id=id"},
	} {
		none := map[string]string{"AWS_PROFILE": ""}
		maps.Copy(none, changes)
		if got := ready(none).credentials(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
