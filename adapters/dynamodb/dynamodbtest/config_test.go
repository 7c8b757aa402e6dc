package dynamodbtest_test

import (
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

func TestConfig(t *testing.T) {
	const engine, amazon = "http://127.0.0.1:8000", "https://dynamodb.eu-central-1.amazonaws.com"
	actual := map[string]string{
		"AWS_ACCESS_KEY_ID": "REAL", "AWS_SECRET_ACCESS_KEY": "pretend", "AWS_REGION": "eu-central-1",
	}
	for claim, tt := range map[string]struct {
		endpoint    string
		environment map[string]string
		want        string // the key and the region
	}{
		"an engine gets pretended credentials":                      {engine, nil, "PRETEND us-east-1"},
		"an engine does not get the credentials of the environment": {engine, actual, "PRETEND eu-central-1"},
		"a host with a similar name gets pretended credentials":     {"http://amazonaws.com.example", actual, "PRETEND eu-central-1"},
		"Amazon gets the credentials of the environment":            {amazon, actual, "REAL eu-central-1"},
		"Amazon without credentials is an error":                    {amazon, nil, ""},
	} {
		t.Run(claim, func(t *testing.T) {
			config := dynamodbtest.Config(tt.endpoint, func(name string) string { return tt.environment[name] })
			credentials, err := config.Credentials.Retrieve(t.Context())
			if (err != nil) != (tt.want == "") {
				t.Fatalf("got error %v, want one: %t", err, tt.want == "")
			}
			if got := credentials.AccessKeyID + " " + config.Region; err == nil && got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
