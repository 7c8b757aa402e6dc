package dynamodbtest_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

func TestTheTableHasItsDefinition(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	described, err := h.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &h.Table})
	must(t, err)
	table := described.Table
	if table.TableStatus != types.TableStatusActive {
		t.Errorf("got status %s, want ACTIVE", table.TableStatus)
	}
	got := &dynamodb.CreateTableInput{
		TableName:            table.TableName,
		BillingMode:          table.BillingModeSummary.BillingMode,
		AttributeDefinitions: table.AttributeDefinitions,
		KeySchema:            table.KeySchema,
		StreamSpecification:  table.StreamSpecification,
	}
	for _, index := range table.GlobalSecondaryIndexes {
		got.GlobalSecondaryIndexes = append(got.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: index.IndexName, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	byName := cmpopts.SortSlices(func(a, b types.AttributeDefinition) bool {
		return *a.AttributeName < *b.AttributeName
	})
	exported := cmpopts.IgnoreUnexported(
		dynamodb.CreateTableInput{}, types.AttributeDefinition{}, types.KeySchemaElement{},
		types.GlobalSecondaryIndex{}, types.Projection{}, types.StreamSpecification{},
	)
	if diff := cmp.Diff(dynamodbtest.TableDefinition(h.Table), got, byName, exported); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}

	expiry, err := h.Client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &h.Table})
	must(t, err)
	if got := aws.ToString(expiry.TimeToLiveDescription.AttributeName); got != "expiresAt" {
		t.Errorf("got time to live attribute %q, want expiresAt", got)
	}
}

func TestWithoutStream(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	name := h.Table + "-plain"
	must(t, dynamodbtest.CreateTable(t.Context(), h.Client, name, dynamodbtest.WithoutStream))
	described, err := h.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(name)})
	must(t, err)
	if got := described.Table.StreamSpecification; got != nil && aws.ToBool(got.StreamEnabled) {
		t.Errorf("got stream %v, want none", got.StreamViewType)
	}
}

func TestTheNameOfADroppedTableIsFree(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	name := h.Table + "-again"
	for range 2 {
		must(t, dynamodbtest.CreateTable(t.Context(), h.Client, name))
		must(t, dynamodbtest.DropTable(t.Context(), h.Client, name))
	}
}

func TestTableErrorsNameTheTable(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	err := dynamodbtest.CreateTable(t.Context(), h.Client, h.Table)
	if _, taken := errors.AsType[*types.ResourceInUseException](err); !taken {
		t.Errorf("got %v, want ResourceInUseException", err)
	}
	err = dynamodbtest.DropTable(t.Context(), h.Client, h.Table+"-nothing")
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); !missing {
		t.Errorf("got %v, want ResourceNotFoundException", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
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
			t.Parallel()
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
