mock_provider "aws" {
  source = "../../infra/terraform/modules/orderonce/tests/mocks"
}

mock_provider "aws" {
  alias  = "us"
  source = "../../infra/terraform/modules/orderonce/tests/mocks"
}

run "the_shops_share_nothing" {
  command = plan

  override_data {
    target = module.west.data.aws_region.current
    values = { region = "us-east-1" }
  }

  variables {
    stripe_secret_keys = { north = "sk_test_north", south = "sk_test_south", west = "sk_test_west" }
    checksums = join("", [for name in ["order", "refund", "webhook", "reconcile", "publish"] :
      "${sha256(name)}  ${name}.zip\n"
    ])
  }

  # The hashes are of account and region.
  assert {
    condition     = output.scopes == { north = "north-prod-836569", south = "south-prod-836569", west = "west-prod-eb805c" }
    error_message = "scope: got ${jsonencode(output.scopes)}"
  }
}
