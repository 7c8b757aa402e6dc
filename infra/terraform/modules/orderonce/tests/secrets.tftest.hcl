mock_provider "aws" {
  source = "./tests/mocks"
}

# `make tf` runs this file with -verbose and looks for the canaries in every plan and
# state that it prints.
variables {
  package_dir               = "tests/packages"
  stripe_secret_key         = "sk_test_canary"
  stripe_read_key           = "rk_test_canary"
  stripe_read_key_version   = 1
  stripe_refund_key         = "rk_test_canary"
  stripe_refund_key_version = 1
  webhook_secret            = "whsec_canary"
  webhook_secret_version    = 1
}

run "no_attribute_or_output_contains_a_secret" {
  assert {
    condition = alltrue([for version in [
      aws_secretsmanager_secret_version.stripe, aws_secretsmanager_secret_version.webhook[0],
      aws_secretsmanager_secret_version.stripe_read[0], aws_secretsmanager_secret_version.stripe_refund[0],
      ] : version.secret_string == null && version.secret_binary == null && version.secret_string_wo_version == 1
    ])
    error_message = "a secret is in an argument that is stored in the state, or has another version than its variable"
  }

  assert {
    condition = alltrue([for function in aws_lambda_function.functions :
      length(setintersection(
        keys(function.environment[0].variables), ["STRIPE_SECRET_KEY", "WEBHOOK_SECRETS"],
      )) == 0
    ])
    error_message = "environment: contains the Stripe key or the webhook secret"
  }
}

run "each_function_has_the_key_of_what_it_does" {
  assert {
    condition = { for name, function in aws_lambda_function.functions :
      name => regex("secret:([a-z]+)", function.environment[0].variables.STRIPE_SECRET_ARN)[0]
      if can(function.environment[0].variables.STRIPE_SECRET_ARN)
    } == { order = "writes", refund = "refunds", webhook = "reads", reconcile = "reads" }
    error_message = "STRIPE_SECRET_ARN: only the order function may have the key that charges, and refund its own"
  }

  assert {
    condition = { for name, policy in aws_iam_role_policy.functions :
      name => flatten([for s in jsondecode(policy.policy).Statement : regexall("secret:([a-z]+)", jsonencode(s.Resource))])
      } == {
      order = ["writes"], refund = ["refunds"], webhook = ["reads", "webhook"], reconcile = ["reads"], publish = []
    }
    error_message = "a role reads another key"
  }

  assert {
    condition = jsonencode({ for name, function in aws_lambda_function.functions :
      name => one(regexall("[A-Z][a-z ]*ey 1\\.", function.description))
      }) == jsonencode({
      order = "Key 1.", refund = "Refund key 1.", webhook = "Read key 1.", reconcile = "Read key 1.", publish = null
    })
    error_message = "description: a rotation would not publish the function"
  }
}

run "with_stock_reconcile_cancels_and_needs_the_key_that_writes" {
  variables {
    stock_tracking = true
  }

  assert {
    condition = strcontains(
      aws_lambda_function.functions["reconcile"].environment[0].variables.STRIPE_SECRET_ARN, "secret:writes"
    )
    error_message = "reconcile: could not cancel what holds stock"
  }
}

run "a_rotation_raises_the_version_and_other_keys_are_off_by_default" {
  variables {
    stripe_secret_key         = "sk_test_canary_2"
    stripe_secret_version     = 2
    webhook_secret            = "whsec_canary_2\nwhsec_canary"
    webhook_secret_version    = 2
    stripe_read_key_version   = 0
    stripe_refund_key_version = 0
  }

  assert {
    condition = alltrue([for version in [
      aws_secretsmanager_secret_version.stripe, aws_secretsmanager_secret_version.webhook[0],
    ] : version.secret_string_wo_version == 2])
    error_message = "secret_string_wo_version: a raised version must store the new key, and both webhook secrets"
  }

  assert {
    condition = length(concat(
      aws_secretsmanager_secret.stripe_read, aws_secretsmanager_secret_version.stripe_read,
      aws_secretsmanager_secret.stripe_refund, aws_secretsmanager_secret_version.stripe_refund,
      )) == 0 && alltrue([for name in ["webhook", "refund"] :
      strcontains(aws_lambda_function.functions[name].description, " Key 2.")
    ])
    error_message = "stripe_read_key, stripe_refund_key: must be off by default, and leave the other functions as they were"
  }
}

run "later_applies_need_no_secret" {
  command = plan # Terraform 1.11 rejects a null ephemeral variable in a test that applies

  variables {
    stripe_secret_key      = null
    stripe_secret_version  = 2
    webhook_secret         = null
    webhook_secret_version = 2
    secret_recovery_days   = 0
  }

  assert {
    condition = alltrue([for version in [
      aws_secretsmanager_secret_version.stripe, aws_secretsmanager_secret_version.webhook[0],
    ] : version.secret_string_wo_version == 2])
    error_message = "secret_string_wo_version: changed without a new version"
  }

  assert {
    condition = alltrue([for secret in concat(
      [aws_secretsmanager_secret.stripe], aws_secretsmanager_secret.webhook,
      ) : secret.recovery_window_in_days == 0
    ])
    error_message = "secret_recovery_days: ignored"
  }
}

# The endpoint at Stripe needs the URL of the API, so its secret comes later. Secrets Manager rejects an empty
# value, so the first apply would fail, and storing the first secret must publish a new version.
run "before_the_endpoint_exists_no_webhook_secret_is_stored" {
  command = plan

  variables {
    webhook_secret         = null
    webhook_secret_version = 0
  }

  assert {
    condition = (
      length(aws_secretsmanager_secret.webhook) == 1 && length(aws_secretsmanager_secret_version.webhook) == 0
      && strcontains(aws_lambda_function.functions["webhook"].description, "Webhook secret 0.")
    )
    error_message = "secret: must exist before its value, and the description must name it"
  }
}
